"""The order in which Tab goes through widgets that come later than others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def follow(parts: Sequence[QWidget]) -> None:
    """Have Tab go through ``parts`` in their order, and within each in the order in which it goes through it now."""
    owners = {part: place for place, part in enumerate(parts)}
    found: list[list[QWidget]] = [[] for _ in parts]
    first = parts[0].window()
    one = first.nextInFocusChain()
    while one is not None and one is not first:
        owner: QWidget | None = one
        while owner is not None and owner not in owners:
            owner = owner.parentWidget()
        if owner is not None and one.focusPolicy() is not Qt.FocusPolicy.NoFocus and one.focusProxy() is None:
            found[owners[owner]].append(one)
        one = one.nextInFocusChain()
    for before, after in pairwise([one for part in found for one in part]):
        QWidget.setTabOrder(before, after)


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
