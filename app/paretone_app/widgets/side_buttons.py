"""The two buttons that choose which of the takes being compared a panel shows."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QPushButton, QWidget

from paretone_app.shell.colours import ON_GROUND, Colours, ground
from paretone_app.shell.metrics import STRONG
from paretone_app.widgets.layouts import HBoxLayout

SIDES = ("A", "B")


class SideButtons(QWidget):
    """A and B, in their colours; the one that is shown is pressed."""

    chosen = Signal(str)
    """The user wants to see ``"A"`` or ``"B"``."""

    def __init__(
        self, what: str, parent: QWidget | None = None, verb: str = "Show", between: QWidget | None = None
    ) -> None:
        """``what`` is shown of a side: "the tokens of take". ``between`` is shown between the two buttons."""
        super().__init__(parent)
        self.buttons = {side: QPushButton(side) for side in SIDES}
        self._group = QButtonGroup(self)
        line = HBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        for side, button in self.buttons.items():
            if between is not None and side != SIDES[0]:
                line.addWidget(between)
            button.setCheckable(True)
            button.setAccessibleName(f"{verb} {what} {side}")
            button.setToolTip(f"{verb} {what} {side}")
            button.setMaximumWidth(3 * self.fontMetrics().height())
            button.clicked.connect(lambda _=False, side=side: self.chosen.emit(side))
            self._group.addButton(button)
            line.addWidget(button)

    def show_side(self, shown: str, there: Collection[str]) -> None:
        """``shown`` is what the panel shows, ``""`` for neither; sides that are not ``there`` cannot be chosen."""
        # Of an exclusive group Qt keeps one button pressed.
        self._group.setExclusive(False)
        for side, button in self.buttons.items():
            button.setEnabled(side in there)
            button.setChecked(side == shown)
        self._group.setExclusive(True)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        for side, button in self.buttons.items():
            fill = colours.baseline if side == "A" else colours.accelerated
            pressed = ground(fill)
            button.setStyleSheet(
                f"QPushButton {{ font-weight: {STRONG}; color: {fill}; }}"
                f"QPushButton:disabled {{ color: {colours.disabled}; }}"
                f"QPushButton:checked {{ background: {pressed}; border-color: {pressed}; color: {ON_GROUND}; }}"
                f"QPushButton:checked:focus {{ border: 2px solid {colours.text}; }}"
            )
