"""Buttons that save what a panel shows as a file: one for each form."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from paretone_app.shell.file_dialogs import PLOTS
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout


class ExportButtons(QWidget):
    """SVG, PNG and CSV."""

    wanted = Signal(str)
    """The user wants a file with this ending."""

    def __init__(self, what: str, parent: QWidget | None = None) -> None:
        """``what`` is saved: "the figure"."""
        super().__init__(parent)
        self.buttons: dict[str, QPushButton] = {}
        row = HBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for ending in PLOTS:
            button = build.button(
                ending.upper(),
                lambda _=False, one=ending: self.wanted.emit(one),
                f"Save {what} as {ending.upper()}",
                name=f"Save {what} as {ending.upper()}",
            )
            row.addWidget(button, 1)
            self.buttons[ending] = button
