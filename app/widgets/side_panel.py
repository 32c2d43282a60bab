"""Panels that show one of two sides, A or B, and let the user choose which."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.shell.theme import Colours
from app.widgets.side_buttons import SIDES, SideButtons
from engine.setting.take import Take


class SidePanel(QWidget):
    """Subclasses say which sides there are, and show one."""

    def __init__(self, what: str, colours: Colours, parent: QWidget | None = None, first: str = "B") -> None:
        """``what`` is shown of a side: "the tokens of take". The side ``first`` is in front if it is there."""
        super().__init__(parent)
        self._colours = colours
        self._side = first
        self.side_buttons = SideButtons(what)
        self.side_buttons.chosen.connect(self.show_side)

    def has_side(self, side: str) -> bool:
        """Whether there is something to show of ``"A"`` or ``"B"``."""
        raise NotImplementedError

    def _show(self) -> None:
        """Show the side that was chosen, or, if there is nothing of it, the other one."""
        there = [side for side in SIDES if self.has_side(side)]
        if self._side not in there:
            self._side = there[0] if there else self._side
        self.side_buttons.show_side(self._side, there)

    def show_side(self, side: str) -> None:
        """Show ``"A"`` or ``"B"``, if there is something to show of it."""
        if self.has_side(side):
            self._side = side
        self._show()

    @property
    def side(self) -> str:
        """The side that is shown."""
        return self._side


class TakePanel(SidePanel):
    """A panel about one of the two compared takes."""

    def __init__(self, what: str, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(what, colours, parent)
        self._takes: dict[str, Take | None] = dict.fromkeys(SIDES)

    def set_takes(self, take_a: Take | None, take_b: Take | None) -> None:
        """Show what is compared: a side that changed comes in front if there is something to show of it."""
        takes = {"A": take_a, "B": take_b}
        changed = [side for side in SIDES if takes[side] is not self._takes[side]]
        if not changed:
            return
        self._takes = takes
        if self.has_side(changed[-1]):
            self._side = changed[-1]
        self._show()
