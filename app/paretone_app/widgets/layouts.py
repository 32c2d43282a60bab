"""Layouts on the spacing grid (:mod:`paretone_app.shell.metrics`), whatever the style says. The window uses these,
never Qt's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFormLayout, QGridLayout, QHBoxLayout, QLayout, QVBoxLayout, QWidget

from paretone_app.shell.metrics import GAP

if TYPE_CHECKING:
    _Layout = QLayout
else:
    _Layout = object


class _OnGrid(_Layout):
    """With a gap between what it holds and, as the layout of a widget, around it."""

    def __init__(self, *parent: QWidget) -> None:
        super().__init__(*parent)
        if parent:
            self.setContentsMargins(GAP, GAP, GAP, GAP)
        self.setSpacing(GAP)


class VBoxLayout(_OnGrid, QVBoxLayout):
    """One below the other."""


class HBoxLayout(_OnGrid, QHBoxLayout):
    """Side by side."""


class GridLayout(_OnGrid, QGridLayout):
    """In rows and columns."""


class FormLayout(_OnGrid, QFormLayout):
    """Labels and fields."""
