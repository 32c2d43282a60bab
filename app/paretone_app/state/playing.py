"""What is in the player, where it comes from, and which part of it is heard now. Who plays it writes this; views
follow it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from PySide6.QtCore import QObject, Signal

from paretone.setting.setting import Setting
from paretone.setting.take import Take
from paretone_app.state.differences import model_title, technique_text

_LAST_SECONDS = 0.001
"""A sound at its end is heard this long before it."""


class Origin(Enum):
    NOTHING = "nothing"
    COMPARED = "A or B"
    STREAM = "a take that is being made"
    SOUND = "a sound played separately"
    TEST = "a listening test, of which nothing may be known"


@dataclass(frozen=True)
class Heard:
    """A sound in the player, and what is done with it."""

    origin: Origin = Origin.NOTHING
    title: str = ""
    """What it is and where it comes from, in a line: ``Take A · F5 mini · δ = 0.3``."""
    detail: str = ""
    letter: str = ""
    """``"A"`` or ``"B"`` if it is that take or a part of it, else ``""``."""
    start: float = 0.0
    """Where in that take it begins, in seconds."""
    key: str = ""
    """What it is known by: the id of its take, for one."""
    sounding: bool = False
    seconds: float = 0.0
    """Length of the player's bar: the longer one of A and B; of a stream, the length so far."""
    own_seconds: float = 0.0
    loop: tuple[float, float] | None = None


class Playing(QObject):
    """The sound in the player. During a listening test it is :attr:`Origin.TEST` and nothing more."""

    changed = Signal()
    """Another sound, or something else is done with it."""
    moved = Signal(float)
    """Another part of it is heard: seconds from its beginning."""
    heard_at = Signal(str, float)
    """Which of the finished takes A and B is heard, or a part of it alone, and how many seconds from its beginning;
    ``""`` if neither is."""

    streamed_at = Signal(str, float)
    """The same of the take that is being made, for ``"A"`` or ``"B"``."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.now = Heard()
        self.position = 0.0

    def show(self, heard: Heard) -> None:
        if heard == self.now:
            return
        before, self.now = self.now, heard
        self.changed.emit()
        if (before.origin, before.letter, before.key) != (heard.origin, heard.letter, heard.key):
            self._tell_position()

    def move(self, seconds: float) -> None:
        if seconds != self.position and self.now.origin is not Origin.TEST:
            self.position = seconds
            self.moved.emit(seconds)
            self._tell_position()

    def _tell_position(self) -> None:
        now = self.now
        if now.origin is Origin.TEST:
            self.heard_at.emit("", 0.0)
        elif now.origin is Origin.STREAM:
            self.heard_at.emit("", 0.0)
            self.streamed_at.emit(now.letter, self.position)
        else:
            # At its end, a part of a take is still itself, and not what comes after it in the take.
            last = max(0.0, now.seconds - _LAST_SECONDS)
            within = min(self.position, last) if now.origin is Origin.SOUND else self.position
            self.heard_at.emit(now.letter, now.start + within)


def take_title(take: Take, what: str = "Take") -> str:
    """A take in a line; ``what`` it is: ``Take A``, for example."""
    return setting_title(take.setting, what)


def setting_title(setting: Setting, what: str) -> str:
    """What was made, or is being made, with ``setting``, in a line."""
    return " · ".join((what, model_title(setting.model), technique_text(setting)))
