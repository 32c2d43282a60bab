"""What there is to do at each stop of the tour, and which one is shown. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paretone_app.shell.entries import TourStop

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget


@dataclass(frozen=True)
class Part:
    """One thing to do at a stop."""

    hint: str
    """What to press, as the end of a sentence."""
    control: Callable[[], QWidget | None]
    """Where it is done; ``None`` if that is not in sight."""
    done: Callable[[], bool]
    help: Callable[[], object]
    """Does it for the user. May raise :class:`paretone.errors.PlainError`."""
    why_not: Callable[[], str] = lambda: ""
    """Why it cannot be done now, as a sentence, or ``""``."""
    help_text: str = "Do it for me"
    place: str = ""
    """Name of the panel that it is in, if that is not the stop's."""


class Course:
    """Where the tour is. What was done at a stop counts until the tour ends, also if it is undone."""

    def __init__(self, stops: Sequence[TourStop], parts: Callable[[TourStop], Sequence[Part]]) -> None:
        """``parts`` of a stop are asked for when it is first reached."""
        self.stops = tuple(stops)
        self._parts_of = parts
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._done: dict[str, int] = {}
        """How many parts of a stop are done, by its name."""
        self._at = 0
        self._reach()

    @property
    def stop(self) -> TourStop:
        """The one that is shown."""
        return self.stops[self._at]

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self._at + 1

    @property
    def is_last(self) -> bool:
        """Whether no other stop follows."""
        return self.number == len(self.stops)

    @property
    def part(self) -> Part | None:
        """What is to be done next at the stop; ``None`` once everything is."""
        parts = self._parts[self.stop.name]
        return next(iter(parts[self._done[self.stop.name] :]), None)

    @property
    def last_part(self) -> Part | None:
        """The part that is shown once everything is done."""
        return next(iter(self._parts[self.stop.name][-1:]), None)

    def look(self) -> bool:
        """Note what has been done; whether that is more than before."""
        name, before = self.stop.name, self._done[self.stop.name]
        while (part := self.part) is not None and part.done():
            self._done[name] += 1
        return self._done[name] > before

    def go(self, by: int) -> None:
        """Go ``by`` stops further; not beyond the ends."""
        self._at = min(max(self._at + by, 0), len(self.stops) - 1)
        self._reach()

    def _reach(self) -> None:
        name = self.stop.name
        if name not in self._parts:
            self._parts[name] = tuple(self._parts_of(self.stop))
            self._done[name] = 0
        self.look()
