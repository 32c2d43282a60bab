"""The one player with its deck and its device; what they do is kept in the state, where views follow it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from paretone.audio.sound_system import Sound as SoundSystem
from paretone.audio.sound_system import probe
from paretone.errors import DeviceError
from paretone_app.audio.deck import Deck
from paretone_app.audio.player import Player
from paretone_app.state.playing import Heard, Origin, Playing, take_title

_POLL_MILLISECONDS = 33


class Playback(QObject):
    """Looks at the player 30 times a second."""

    problem_changed = Signal(str)
    """Why nothing can be heard, or ``""``."""
    probing_changed = Signal(bool)
    """Whether an audio device is being looked for."""

    def __init__(self, player: Player, playing: Playing, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.player = player
        self.playing = playing
        self.deck = Deck(player, self)
        """What is in the player."""
        self.looked = False
        """Whether a device was looked for; before that there is nothing to complain about."""
        self.probing = False
        """Whether one is being looked for."""
        self._problem: str | None = None
        self._stream = Heard()
        self._poll = QTimer(self, interval=_POLL_MILLISECONDS)
        self._poll.timeout.connect(self.follow)
        self._poll.start()
        self.deck.changed.connect(self.follow)
        self.deck.lent_changed.connect(lambda _: self.follow())

    # --- What is heard -----------------------------------------------------------------------------------------------
    def begin_stream(self, rate: int, title: str, detail: str, letter: str) -> None:
        """Play a take while it is made: at ``rate`` hertz, called ``title``, for the side ``letter`` if for any."""
        self._stream = Heard(Origin.STREAM, title, detail, letter)
        self.deck.begin_stream(rate)

    @Slot()
    def follow(self) -> None:
        """Update the state from the player."""
        deck, player, playing = self.deck, self.player, self.playing
        if deck.lent:
            playing.show(Heard(Origin.TEST))
            return
        problem = player.problem
        if problem != self._problem and not self.probing:
            self._tell_problem(problem)
        deck.load_when_silent()
        position, now = player.position, self._heard()
        playing.show(now)
        playing.move(position)

    def _heard(self) -> Heard:
        deck, found = self.deck, self._source()
        own = found.own_seconds or deck.length
        return replace(found, sounding=self.player.playing, seconds=deck.length, own_seconds=own, loop=deck.loop)

    def _source(self) -> Heard:
        deck, sound = self.deck, self.deck.sound
        if sound is not None:
            sides = {take.id: side for side, take in reversed(deck.takes.items()) if take is not None}
            letter, start = sound.part_of or (sides.get(sound.key, ""), 0.0)
            return Heard(Origin.SOUND, sound.title, sound.detail, letter, start, sound.key)
        if self.player.streaming:
            return self._stream
        take = deck.takes[deck.heard]
        if take is None:
            return Heard()
        title = take_title(take, f"Take {deck.heard}")
        return Heard(Origin.COMPARED, title, take.text, deck.heard, key=take.id, own_seconds=take.seconds)

    # --- The device --------------------------------------------------------------------------------------------------
    def connect_device(self) -> None:
        """Look for the audio device in the background and open it; again after it was lost."""
        if not self.probing:
            self.probing = self.looked = True
            self.probing_changed.emit(True)
            self.deck.analyser.run(probe, self._open_device)

    def _open_device(self, found: SoundSystem | BaseException) -> None:
        self.probing = False
        self.probing_changed.emit(False)
        if isinstance(found, BaseException):
            raise found
        try:
            self.player.open(found)
        except DeviceError as error:
            self._tell_problem(str(error))
        self.follow()

    def _tell_problem(self, problem: str) -> None:
        if problem and self.player.mixer.state.playing:
            self.player.pause()
        self._problem = problem
        self.problem_changed.emit(problem)

    def shut_down(self) -> None:
        """Close the device and end the worker thread."""
        self._poll.stop()
        self.deck.shut_down(wait=not self.probing)
