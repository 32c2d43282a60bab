"""Listen: compare A and B by ear, switching in the middle of a word at equal loudness, and by their plots."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QWidget

from paretone_app.audio.deck import Deck
from paretone_app.audio.player import Mode
from paretone_app.features.listen.plots import ComingTake, ComparisonPlots, Picture
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR
from paretone_app.state.differences import label_of
from paretone_app.state.playing import Origin, Playing
from paretone_app.widgets import build
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.panel_parts import Caution, Facts
from paretone_app.widgets.screen_readers import GROUP
from paretone_app.widgets.side_panel import SIDES

_ZOOM = 1.5
_DRAW_MILLISECONDS = 33


class ListenPanel(QWidget):
    """Plots of a deck's two takes, with cautions about comparing them. Keys: + and - zoom, 0 shows all."""

    screen_role = GROUP

    seek_wanted = Signal(float)
    loop_wanted = Signal(float, float)
    """Loop a part of A and B: start and end in seconds."""

    def __init__(self, deck: Deck, playing: Playing, colours: Colours) -> None:
        super().__init__()
        self._deck = deck
        self._playing = playing
        self._colours = colours
        self._coming: ComingTake | None = None
        self._drawn_gains = (1.0, 1.0)
        """Gains at which A and B are drawn, equal to those of playback."""
        self._soon = QTimer(self, singleShot=True, interval=_DRAW_MILLISECONDS)
        self._soon.timeout.connect(self._draw_coming)
        self.setAccessibleName("Listen")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._make_widgets()
        parts: list[build.Placed] = [self._difference, self.caution, (self.plots, 1), self._facts]
        build.fill(VBoxLayout(self), parts, (GAP, NEAR, GAP, NEAR)).setSpacing(NEAR)
        self._make_shortcuts()
        deck.changed.connect(self._show_deck)
        deck.analysed.connect(self._show_takes)
        deck.lent_changed.connect(self.setDisabled)
        playing.changed.connect(self._show_heard)
        playing.moved.connect(self._show_position)
        self.set_colours(colours)
        self._show_deck()
        self._show_takes()

    def set_difference(self, text: str) -> None:
        self._difference.setText(text)
        self._difference.setVisible(bool(text))

    def begin_take(self, side: str, rate: int) -> None:
        """Begin a streaming take of ``side``; :meth:`add_to_take` adds its samples at ``rate`` hertz."""
        self._coming = ComingTake(side, rate)

    def add_to_take(self, samples: np.ndarray) -> None:
        if self._coming is not None:
            self._coming.add(samples)
            self._soon.start()

    def end_take(self, finished: bool) -> None:
        """End the streaming take: a finished one is drawn as a whole after its analysis, another one is removed."""
        if not finished:
            self._coming = None
            self._draw()

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.plots.set_colours(colours)
        self.caution.set_colours(colours)

    def _make_widgets(self) -> None:
        self._difference = build.words("muted", name="What differs")
        self._difference.hide()
        self.caution, self._facts = Caution(), Facts()
        self.plots = ComparisonPlots(self._colours)
        self.plots.sought.connect(self.seek_wanted)
        self.plots.region_drawn.connect(self.loop_wanted)
        self.plots.seen_changed.connect(self._note_seen)
        self.plots.read_out.connect(self._facts.show_read_out)
        self.plots.difference_shown.connect(self._facts.show_difference)

    def _make_shortcuts(self) -> None:
        for key, slot in (
            ("+", lambda: self.plots.zoom(1 / _ZOOM, self._playing.position)),
            ("-", lambda: self.plots.zoom(_ZOOM, self._playing.position)),
            ("0", self.plots.show_all),
        ):
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)

    def _note_seen(self) -> None:
        """A loop begins with the visible section."""
        self._deck.seen = self.plots.seen

    def _show_takes(self) -> None:
        self._coming = None
        self.plots.set_names(*("" if one is None else label_of(one) or one.text for one in self._deck.analysis.takes))
        self._draw()

    def _draw(self) -> None:
        deck = self._deck
        analysis, self._drawn_gains = deck.analysis, deck.gains
        picture_a, picture_b = (
            None if take is None else Picture(take.samples * np.float32(gain), take.sample_rate, mel + np.log(gain))
            for take, mel, gain in zip(analysis.takes, analysis.mels, deck.gains, strict=True)
        )
        if self._coming is not None and self._coming.picture is not None:
            shown = {"A": picture_a, "B": picture_b, self._coming.side: self._coming.picture}
            self.plots.set_pictures(shown["A"], shown["B"], f"Take {self._coming.side} is being made.")
            return
        take_a, take_b = analysis.takes
        reason = ""
        if take_a is not None and take_b is not None:
            if deck.comparison.mode is Mode.RESTART:
                reason = "The takes have different timing: a difference would mean nothing."
            elif take_a.sample_rate != take_b.sample_rate:
                reason = "The takes have different sample rates: no difference to show."
        self.plots.set_pictures(picture_a, picture_b, reason)
        self.plots.set_loop(deck.loop)

    def _draw_coming(self) -> None:
        """Draw the streaming take, at most 30 times per second."""
        if self._coming is not None and self.isVisible():
            self._draw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._draw_coming()
        self._show_heard()

    def _show_position(self, seconds: float) -> None:
        now = self._playing.now
        if self.isVisible():
            # No playhead for a sound that is neither A nor B nor a part of them.
            there = bool(now.letter) or now.origin is not Origin.SOUND
            self.plots.set_position(now.start + seconds if there else None)
        self._facts.show_underruns(self._deck.player.underruns, self._deck.waits[0])

    def _show_heard(self) -> None:
        now = self._playing.now
        if now.origin is not Origin.TEST:
            self.plots.set_heard(SIDES.index(now.letter) if now.letter else None)
            self._show_position(self._playing.position)

    def _show_deck(self) -> None:
        deck = self._deck
        if deck.lent:
            return
        self.plots.set_loop(None if deck.sound is not None else deck.loop)
        active = deck.player.comparison
        titles = {Mode.SYNC: "In sync", Mode.RESTART: "Restart", Mode.STREAM: "Streaming", Mode.ALONE: "Single"}
        told = deck.complete or active.mode in (Mode.STREAM, Mode.ALONE)
        self._facts.show_mode(titles[active.mode], active.reason if told else "")
        if deck.gains != self._drawn_gains:
            self._draw()
