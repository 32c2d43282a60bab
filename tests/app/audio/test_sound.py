"""Sounds that are played alone are equally loud."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.measure.loudness import HIGHEST_PEAK, integrated_loudness
from paretone_app.audio.deck import Deck
from paretone_app.audio.player import Player
from paretone_app.audio.sound import ALONE_LUFS, Sound

RATE = 24000


def _tone(level: float) -> Sound:
    time = np.arange(RATE) / RATE
    return Sound((level * np.sin(2 * np.pi * 440 * time)).astype(np.float32), RATE, "A tone")


@pytest.mark.parametrize("level", [0.02, 0.5])
def test_soft_and_loud_ones_come_to_one_level(level: float) -> None:
    sound = _tone(level)
    assert integrated_loudness(sound.samples * sound.gain, RATE).lufs == pytest.approx(ALONE_LUFS, abs=0.05)


def test_no_peak_is_clipped_for_it() -> None:
    clicks = np.full(RATE, 1e-3, np.float32)
    clicks[::2000] = 0.5
    sound = Sound(clicks, RATE, "Clicks")
    assert np.abs(clicks).max() * sound.gain <= 10 ** (HIGHEST_PEAK / 20) + 1e-6


def test_silence_stays_silence() -> None:
    assert Sound(np.zeros(RATE, np.float32), RATE, "Silence").gain == 1.0


@pytest.mark.usefixtures("qapp")
def test_the_player_takes_it_unless_loudness_is_not_matched() -> None:
    player = Player()
    deck = Deck(player)
    sound = _tone(0.5)
    deck.hear_sound(sound)
    assert deck.gain == sound.gain < 1
    deck.set_matching(False)
    assert deck.gain == 1.0
    deck.shut_down(wait=True)


def test_what_is_played_without_matching_does_not_clip() -> None:
    loud = _tone(1.64)
    assert np.abs(loud.samples * loud.headroom).max() <= 1
    assert _tone(0.5).headroom == 1.0
    late = Sound(np.concatenate([_tone(0.02).samples] * 16 + [_tone(5.0).samples]), RATE, "Loud at its end")
    assert np.abs(late.samples * late.gain).max() <= 1, "though only its beginning is measured"


@pytest.mark.usefixtures("qapp")
def test_a_stream_of_which_a_piece_would_clip_is_turned_down_as_a_whole() -> None:
    """What is heard of the change: ``tests/end_to_end/test_audio_sink.py``."""
    player = Player()
    deck = Deck(player)
    deck.begin_stream(RATE)
    for level in (0.5, 1.64, 0.5):
        deck.append(_tone(level).samples)
    programme = player.mixer._programme
    assert deck.gain == programme.gains[0] == pytest.approx(1 / 1.64, abs=1e-3)
    heard = programme.recordings[0].samples * programme.gains[0]
    peaks = [float(np.abs(part[1000:-1000]).max()) for part in np.array_split(heard, 3)]
    assert peaks == pytest.approx([0.5 / 1.64, 1.0, 0.5 / 1.64], abs=0.02), "one factor"
    deck.begin_stream(RATE)
    assert deck.gain == player.mixer._programme.gains[0] == 1.0
    deck.shut_down(True)
