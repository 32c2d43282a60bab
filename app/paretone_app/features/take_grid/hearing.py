"""Hearing cells of the take grid: from one to the next at the same place in the sentence, round and round."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QObject, Signal

from paretone.errors import PlainError
from paretone.setting.library import TakeSummary
from paretone_app.audio.sound import Sound, is_silent
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.state.differences import keeps_timing
from paretone_app.state.playing import setting_title

_KEPT = 48
"""Sounds."""
_ROW = 12
"""Sounds in the player."""


class CellHearing(QObject):
    """Plays takes through the one player."""

    failed = Signal(str)
    """A sentence on a take that could not be read, or is silent."""

    def __init__(
        self,
        player: PlayerPresenter,
        load_audio: Callable[[], Callable[[str], tuple[np.ndarray, int]]],
        parent: QObject,
    ) -> None:
        """``load_audio`` gives what reads takes by their ids."""
        super().__init__(parent)
        self._player, self._load_audio = player, load_audio
        self._sounds: OrderedDict[str, Sound] = OrderedDict()
        self._row: tuple[Sound, ...] = ()
        self._wanted = ""

    @property
    def heard(self) -> str:
        """The id of the take that is heard; ``""`` for none of these."""
        deck = self._player.deck
        ours = bool(self._row) and deck.row is self._row and self._player.player.busy
        return deck.sound.key if ours and deck.sound is not None else ""

    def hear(self, take: TakeSummary) -> None:
        """Hear ``take``: where the one before it is if that says the same, else from its beginning."""
        if self._player.why_not_hear() or (self.heard and take.id == self._wanted):
            return
        self._wanted = take.id
        if take.id == self.heard:
            return
        if take.id in self._sounds:
            self._play(take, self._sounds[take.id])
            return
        load, player = self._load_audio(), self._player.player

        def read() -> Sound:
            samples, rate = load(take.id)
            player.prepare(samples, rate)
            return Sound(samples, rate, setting_title(take.setting, "Grid"), take.text, take.id).worked_out()

        self._player.deck.analyser.run(read, lambda made: self._take_over(take, made))

    def stop(self) -> None:
        """Fall silent, if one of these is heard."""
        self._wanted = ""
        if self.heard:
            self._player.player.pause()

    def _take_over(self, take: TakeSummary, made: Sound | BaseException) -> None:
        if isinstance(made, PlainError):
            self.failed.emit(str(made))
            return
        if isinstance(made, BaseException):
            raise made
        if is_silent(made.samples):
            self.failed.emit(f"{made.title} is silent: there is nothing to hear in this take.")
        self._sounds[take.id] = made
        while len(self._sounds) > _KEPT:
            self._sounds.popitem(last=False)
        if self._wanted == take.id:
            self._play(take, made)

    def _play(self, take: TakeSummary, sound: Sound) -> None:
        deck = self._player.deck
        if deck.lent:
            return  # A listening test has begun meanwhile.
        if self.heard and deck.sound is not None and deck.sound.detail == take.text:
            if all(one is not sound for one in self._row):
                others = [one for one in self._row if one is not deck.sound][-_ROW:]
                self._row = (*others, deck.sound, sound)
                deck.exchange_row(self._row, len(self._row) - 2)
            deck.go_in_row(next(place for place, one in enumerate(self._row) if one is sound))
        else:
            self._row = (sound,)
            self._player.hear_row(self._row, 0, keeps_timing(take.setting))
            deck.set_loop((0.0, sound.seconds))
