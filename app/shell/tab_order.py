"""The order in which Tab goes through widgets that come later than others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def insert_before(widget: QWidget, added: Sequence[QWidget]) -> None:
    """Have Tab reach ``added``, in their order, just before ``widget``; Qt puts what is made later at the end."""
    before = widget.previousInFocusChain()
    # Qt passes over a request about a widget that never has the focus, without a word.
    while before is not None and before is not widget and before.focusPolicy() is Qt.FocusPolicy.NoFocus:
        before = before.previousInFocusChain()
    if before is not None:
        insert_after(before, added)


def insert_after(widget: QWidget, added: Sequence[QWidget]) -> None:
    """Have Tab reach ``added``, in their order, just after ``widget``, which can have the focus."""
    for one, other in pairwise((widget, *added)):
        QWidget.setTabOrder(one, other)
