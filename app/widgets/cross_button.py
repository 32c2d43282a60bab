"""The small button that takes a line away, or puts a message away."""

from __future__ import annotations

from PySide6.QtWidgets import QToolButton


def cross_button(name: str, tip: str) -> QToolButton:
    """A quiet ✕, called ``name`` by screen readers and explained by ``tip``."""
    made = QToolButton()
    made.setText("✕")
    made.setToolTip(tip)
    made.setAccessibleName(name)
    made.setProperty("look", "quiet")
    return made
