"""Panels that show one of two sides, A or B, and let the user choose which."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QPushButton, QWidget

from paretone.setting.take import Take, Trace
from paretone_app.shell.colours import ON_GROUND, Colours, ground
from paretone_app.shell.theme import STRONG
from paretone_app.state.playing import Playing
from paretone_app.state.synthesis import Coming
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
        for side, button in self.buttons.items():
            fill = colours.baseline if side == "A" else colours.accelerated
            pressed = ground(fill)
            button.setStyleSheet(
                f"QPushButton {{ font-weight: {STRONG}; color: {fill}; }}"
                f"QPushButton:disabled {{ color: {colours.disabled}; }}"
                f"QPushButton:checked {{ background: {pressed}; border-color: {pressed}; color: {ON_GROUND}; }}"
                f"QPushButton:checked:focus {{ border: 2px solid {colours.text}; }}"
            )


CHOSEN = "chosen point"
"""Stands for a take that is neither A nor B, but that of a point chosen elsewhere."""


class SidePanel(QWidget):
    """Subclasses say which sides there are, and show one."""

    sides: tuple[str, ...] = SIDES

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
        there = [side for side in self.sides if self.has_side(side)]
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
        return self._side


class TakePanel(SidePanel):
    """A panel about one of the two compared takes; with :data:`CHOSEN` among its sides, also about the take of a point
    that was chosen elsewhere."""

    def __init__(self, what: str, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(what, colours, parent)
        self._takes: dict[str, Take | None] = dict.fromkeys(self.sides)
        self._before = self._side
        """The side that was shown before the chosen point's."""
        self._coming: tuple[str, Trace] | None = None
        """The side of a take that is being made, and what was seen inside of it."""
        self._follows: Coming | None = None
        self._playing: Playing | None = None

    def follow(self, playing: Playing, coming: Coming) -> None:
        """Show which part of the take is heard, and what is seen inside of one that is being made."""
        self._follows, self._playing = coming, playing
        playing.heard_at.connect(self._show_heard)
        playing.streamed_at.connect(self._show_streamed)
        coming.changed.connect(self._follow_coming)

    @Slot(str, float)
    def _show_heard(self, side: str, seconds: float) -> None:
        chosen, now = self._takes.get(CHOSEN), None if self._playing is None else self._playing.now
        if not side and chosen is not None and now is not None and now.key == chosen.id:
            side = CHOSEN
        if not self.is_coming(self._side):
            self.set_position(side, seconds)

    @Slot(str, float)
    def _show_streamed(self, side: str, seconds: float) -> None:
        if self.is_coming(side):
            self.set_position(side, seconds)

    @Slot()
    def _follow_coming(self) -> None:
        if self._follows is not None:
            self.show_coming(self._follows.side, self._follows.trace)

    def set_position(self, side: str, seconds: float | None) -> None:
        """Take ``side`` is heard, ``seconds`` from its beginning; ``None`` if nothing is."""
        raise NotImplementedError

    def in_trace(self, trace: Trace) -> object | None:
        """What the panel shows of a trace; ``None`` if there is nothing of it."""
        raise NotImplementedError

    def has_side(self, side: str) -> bool:
        return self._trace_of(side) is not None

    def is_coming(self, side: str) -> bool:
        """Whether the take of ``side`` is shown while it is made."""
        return self._coming is not None and self._coming[0] == side

    def _take(self, side: str) -> Take | None:
        """The finished take of ``side``, if that is what is shown of it."""
        return None if self.is_coming(side) else self._takes[side]

    def _trace_of(self, side: str) -> Trace | None:
        """The trace of ``side``, if the panel has something to show of it."""
        take = self._takes[side]
        trace = self._coming[1] if self._coming is not None and self.is_coming(side) else take.trace if take else None
        return trace if trace is not None and self.in_trace(trace) is not None else None

    def show_coming(self, side: str, trace: Trace) -> None:
        """A take for ``side`` is being made, of which this much was seen; ``""``: there is none any more. A take that
        the panel has nothing to show of leaves what is there."""
        before = self._coming
        self._coming = (side, trace) if side and self.in_trace(trace) is not None else None
        if self._coming is not None and (before is None or before[0] != side):
            self._side = side
        if self._coming is not None or before is not None:
            self._show()

    def set_takes(self, take_a: Take | None, take_b: Take | None) -> None:
        """Show what is compared: a side that changed comes in front if there is something to show of it."""
        takes = self._takes | {"A": take_a, "B": take_b}
        changed = [side for side in SIDES if takes[side] is not self._takes[side]]
        if not changed:
            return
        self._takes = takes
        if self.has_side(changed[-1]):
            self._side = changed[-1]
        self._show()

    def set_chosen(self, take: Take | None) -> None:
        """Show the take of a point that was chosen elsewhere, until there is none or the user wants A or B."""
        self._takes = self._takes | {CHOSEN: take}
        if self._side != CHOSEN:
            self._before = self._side
        self._side = CHOSEN if self.has_side(CHOSEN) else self._before
        self._show()
