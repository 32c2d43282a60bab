"""Connects the one player with its bar and its keys."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from paretone_app.audio.player import Player
from paretone_app.features.player.announcing import PlayerAnnouncements
from paretone_app.features.player.keys import PlayerKeys
from paretone_app.features.player.panel import PlayerPanel
from paretone_app.features.player.playback import Playback
from paretone_app.listening.wording import signed
from paretone_app.shell.colours import Colours
from paretone_app.state.playing import Playing, take_title
from paretone_app.widgets.side_panel import SIDES


class PlayerControl(QObject):
    """The player of ``window``, shown in :attr:`bar`."""

    def __init__(self, window: QWidget, playing: Playing, colours: Colours, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.playing = playing
        self.playback = Playback(Player(), playing, self)
        self.deck = self.playback.deck
        self.bar = PlayerPanel(colours)
        self.keys = PlayerKeys(window, self.deck, {"M": self.bar.toggle_matching, "N": self.bar.reconnect})
        self.announcements = PlayerAnnouncements(playing, self.bar)
        bar, deck, playback = self.bar, self.deck, self.playback
        bar.start_wanted.connect(deck.go_to_start)
        bar.play_wanted.connect(deck.toggle_play)
        bar.stop_wanted.connect(deck.stop)
        bar.loop_wanted.connect(deck.toggle_loop)
        bar.side_wanted.connect(deck.choose)
        bar.switch_wanted.connect(deck.switch)
        bar.matching_changed.connect(deck.set_matching)
        bar.strip.sought.connect(deck.seek)
        bar.strip.region_drawn.connect(lambda start, end: deck.set_loop((start, end)))
        bar.silence_wanted.connect(self._fall_silent)
        bar.retry_wanted.connect(playback.connect_device)
        deck.changed.connect(self._show_deck)
        deck.analysed.connect(self._show_deck)
        playback.problem_changed.connect(lambda problem: bar.show_problem(problem, playback.looked))
        playback.probing_changed.connect(bar.show_probing)
        playing.changed.connect(self._show_heard)
        playing.moved.connect(bar.show_position)
        self._show_deck()

    @Slot()
    def _show_deck(self) -> None:
        """Show the takes, how loud they are made, and the waveform of what is heard."""
        deck = self.deck
        gains = dict(zip(SIDES, deck.gains, strict=True))
        parts = [
            f"{side} {signed(20 * np.log10(gains[side]), '+')} dB"
            for side, take in zip(SIDES, deck.analysis.takes, strict=True)
            if take is not None
        ]
        short = "" if deck.analysis.exact else "Measured without gating: a take is shorter than 0.4 s."
        self.bar.show_gains("   ".join(parts), short)
        for side, take in deck.takes.items():
            self.bar.show_name(side, None if take is None else take_title(take, f"Take {side}"))
        self._show_heard()

    @Slot()
    def _show_heard(self) -> None:
        deck, now = self.deck, self.playing.now
        there = [side for side, take in deck.takes.items() if take is not None]
        self.bar.show_heard(now, there)
        self.bar.strip.set_envelope(None if deck.lent else deck.envelope, deck.gain)
        self.bar.show_position(self.playing.position)

    @Slot()
    def _fall_silent(self) -> None:
        if not self.deck.lent:
            self.deck.player.pause()
