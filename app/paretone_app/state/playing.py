"""The sound in the player: origin, title and position. The player writes this; views follow."""

from dataclasses import dataclass
from enum import Enum

from PySide6.QtCore import QObject, Signal

from paretone.setting.setting import Setting
from paretone_app.state.differences import model_title, technique_text

SIDES = ("A", "B")
LANES = (*SIDES, *"345678")
"""Letters of the lanes in Listen; those after A and B are the keys that play them."""
_LAST_SECONDS = 0.001
"""A sound at its end counts as heard this long before it."""


class Origin(Enum):
    NOTHING = "nothing"
    COMPARED = "the take of a lane"
    STREAM = "a take that is being made"
    SOUND = "a sound played separately"
    TEST = "a listening test, of which nothing may be known"


@dataclass(frozen=True)
class Heard:
    origin: Origin = Origin.NOTHING
    title: str = ""
    """Description with origin: ``Take A · F5 mini · δ = 0.3``."""
    detail: str = ""
    letter: str = ""
    """The letter of its lane, also for a part of that take, else ``""``."""
    start: float = 0.0
    """Offset of the sound within that take, in seconds."""
    key: str = ""
    """Identity, such as the id of the take."""
    sounding: bool = False
    seconds: float = 0.0
    """Length of the player's bar: of the longer of A and B, or of a stream so far."""
    own_seconds: float = 0.0
    loop: tuple[float, float] | None = None


class Playing(QObject):
    """The sound in the player; during a listening test only :attr:`Origin.TEST`."""

    changed = Signal()
    """Another sound, or another playback state."""
    moved = Signal(float)
    """New position, in seconds from the beginning."""
    heard_at = Signal(str, float)
    """Finished take heard, ``"A"`` or ``"B"`` (or a part of it), or ``""``, and the position in it in seconds."""

    streamed_at = Signal(str, float)
    """Likewise for the take being made, ``"A"`` or ``"B"``."""

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
            # The end of a part belongs to the part, not to the audio after it.
            last = max(0.0, now.seconds - _LAST_SECONDS)
            within = min(self.position, last) if now.origin is Origin.SOUND else self.position
            self.heard_at.emit(now.letter, now.start + within)


def setting_title(setting: Setting, what: str) -> str:
    """One-line title of a sound made with ``setting``; ``what`` is a prefix such as ``Take A``."""
    return " · ".join((what, model_title(setting.model), technique_text(setting)))
