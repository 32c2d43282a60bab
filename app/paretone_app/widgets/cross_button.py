"""The small button that takes a line away, or puts a message away."""

from __future__ import annotations

from PySide6.QtWidgets import QToolButton

from paretone_app.widgets import build


def cross_button(name: str, tip: str) -> QToolButton:
    """A quiet ✕, called ``name`` by screen readers and explained by ``tip``."""
    made = build.named(QToolButton(), name, tip)
    made.setText("✕")
    made.setProperty("look", "quiet")
    return made
