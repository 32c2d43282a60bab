"""Panels that show one of two sides, A or B, chosen by the user."""

from collections.abc import Collection

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QPushButton, QWidget

from paretone.setting.take import Take, Trace
from paretone_app.shell.colours import ON_GROUND, Colours, ground
from paretone_app.shell.theme import STRONG
from paretone_app.state.differences import label_of
from paretone_app.state.playing import SIDES, Playing
from paretone_app.state.synthesis import Coming
from paretone_app.widgets.layouts import HBoxLayout


class SideButtons(QWidget):
    """Buttons A and B, in their colours; the shown side is pressed."""

    chosen = Signal(str)

    def __init__(self, what: str, verb: str = "Show", between: QWidget | None = None) -> None:
        """``what``: subject of the labels, such as "the tokens of take"; ``between``: widget between the buttons."""
        super().__init__()
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
        """``shown``: the side in the panel, ``""`` for neither; sides not in ``there`` are disabled."""
        # Qt keeps one button of an exclusive group pressed.
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
"""Side of a take that is neither A nor B but belongs to a point chosen elsewhere."""


class SidePanel(QWidget):
    """Subclasses define the sides, and show one."""

    sides: tuple[str, ...] = SIDES

    def __init__(self, what: str, colours: Colours, parent: QWidget | None = None, first: str = "B") -> None:
        """``what``: subject of the labels, such as "the tokens of take". ``first``: the preferred side at first."""
        super().__init__(parent)
        self._colours = colours
        self.side = first
        self.side_buttons = SideButtons(what)
        self.side_buttons.chosen.connect(self.show_side)

    def has_side(self, side: str) -> bool:
        raise NotImplementedError

    def _show(self) -> None:
        """Show the chosen side or, if it has no content, another one."""
        there = [side for side in self.sides if self.has_side(side)]
        if self.side not in there:
            self.side = there[0] if there else self.side
        self.side_buttons.show_side(self.side, there)

    def show_side(self, side: str) -> None:
        if self.has_side(side):
            self.side = side
        self._show()


class TakePanel(SidePanel):
    """A panel about one of the compared takes or, with :data:`CHOSEN` among its sides, of a point chosen elsewhere."""

    hear_wanted = Signal(str, float)
    """Play this side from here, in seconds."""

    def __init__(self, what: str, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(what, colours, parent)
        self._takes: dict[str, Take | None] = dict.fromkeys(self.sides)
        self._before = self.side
        """The side shown before the chosen point's."""
        self._coming: tuple[str, Trace] | None = None
        """Side of a take being made, and its trace so far."""
        self._playing: Playing | None = None

    def follow(self, playing: Playing, coming: Coming) -> None:
        """Follow the playback position, and the trace of a take being made."""
        self._playing = playing
        playing.heard_at.connect(self._show_heard)
        playing.streamed_at.connect(lambda side, at: self.set_position(side, at) if self.is_coming(side) else None)
        coming.changed.connect(lambda: self.show_coming(coming.side, coming.trace))

    def _show_heard(self, side: str, seconds: float) -> None:
        chosen, now = self._takes.get(CHOSEN), None if self._playing is None else self._playing.now
        if not side and chosen is not None and now is not None and now.key == chosen.id:
            side = CHOSEN
        if not self.is_coming(self.side):
            self.set_position(side, seconds)

    def set_position(self, side: str, seconds: float | None) -> None:
        """Mark the playback position: ``seconds`` from the beginning of take ``side``; ``None`` if nothing plays."""
        raise NotImplementedError

    def in_trace(self, trace: Trace) -> object | None:
        """The part of a trace that the panel shows; ``None`` if missing."""
        raise NotImplementedError

    def has_side(self, side: str) -> bool:
        return self._trace_of(side) is not None

    def is_coming(self, side: str) -> bool:
        """Whether the take of ``side`` is shown while it is made."""
        return self._coming is not None and self._coming[0] == side

    def _take(self, side: str) -> Take | None:
        """The finished take of ``side``; ``None`` while a new one is shown."""
        return None if self.is_coming(side) else self._takes[side]

    @property
    def title(self) -> str:
        take = self._take(self.side)
        label = "" if take is None else label_of(take)
        if self.side == CHOSEN:
            return f"Chosen point, {label}" if label else "Chosen point"
        return label or (f"Take {self.side}, streaming" if self.is_coming(self.side) else "Take")

    def _trace_of(self, side: str) -> Trace | None:
        """The trace of ``side``, if the panel can show it."""
        take = self._takes[side]
        trace = self._coming[1] if self._coming is not None and self.is_coming(side) else take.trace if take else None
        return trace if trace is not None and self.in_trace(trace) is not None else None

    def show_coming(self, side: str, trace: Trace) -> None:
        """Show the trace so far of a take being made for ``side``; ``""`` ends this."""
        before = self._coming
        self._coming = (side, trace) if side and self.in_trace(trace) is not None else None
        if self._coming is not None and (before is None or before[0] != side):
            self.side = side
        if self._coming is not None or before is not None:
            self._show()

    def set_takes(self, take_a: Take | None, take_b: Take | None) -> None:
        """Set the compared takes; a changed side with content comes to the front."""
        takes = self._takes | {"A": take_a, "B": take_b}
        changed = [side for side in SIDES if takes[side] is not self._takes[side]]
        if not changed:
            return
        self._takes = takes
        if self.has_side(changed[-1]):
            self.side = changed[-1]
        self._show()

    def set_chosen(self, take: Take | None) -> None:
        """Show the take of a point chosen elsewhere, until it is ``None`` or the user chooses A or B."""
        self._takes = self._takes | {CHOSEN: take}
        if self.side != CHOSEN:
            self._before = self.side
        self.side = CHOSEN if self.has_side(CHOSEN) else self._before
        self._show()
