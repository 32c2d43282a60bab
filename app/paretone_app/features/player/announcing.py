"""Screen readers are told what plays when it was a key that changed it; of a listening test they are told nothing."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from paretone_app.numbers import fixed
from paretone_app.state.playing import Heard, Origin, Playing
from paretone_app.widgets.screen_readers import announce

_TOGETHER_MILLISECONDS = 80
"""A sound that is chosen begins to play a little later; that is one sentence."""


class PlayerAnnouncements(QObject):
    """Follows the state, on behalf of the player's bar."""

    said = Signal(str)
    """What screen readers are given to say."""

    def __init__(self, playing: Playing, bar: QWidget) -> None:
        super().__init__(bar)
        self._playing, self._bar = playing, bar
        self._last = playing.now
        self._soon = QTimer(self, singleShot=True, interval=_TOGETHER_MILLISECONDS)
        self._soon.timeout.connect(self._say)
        playing.changed.connect(self._soon.start)

    @Slot()
    def _say(self) -> None:
        before, self._last = self._last, self._playing.now
        sentence = what_changed(before, self._last)
        if sentence:
            announce(self._bar, sentence)
            self.said.emit(sentence)


def what_changed(before: Heard, now: Heard) -> str:
    """What to say, as a sentence; ``""`` if that is nothing."""
    if Origin.TEST in (before.origin, now.origin) or now.origin is Origin.NOTHING:
        return ""
    other = (before.origin, before.key, before.title) != (now.origin, now.key, now.title)
    if other and now.sounding:
        return f"Playing: {now.title}"
    if other:
        return now.title
    if now.sounding != before.sounding:
        return f"Playing: {now.title}" if now.sounding else "Paused"
    if now.loop != before.loop:
        return "Loop off" if now.loop is None else f"Loop from {fixed(now.loop[0], 2)} to {fixed(now.loop[1], 2)} s"
    return ""
