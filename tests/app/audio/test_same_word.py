"""Where one sound goes on in another one that says the same with other timing."""

from __future__ import annotations

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from paretone_app.audio.deck import Deck
from paretone_app.audio.player import Mode, Player
from paretone_app.audio.sound import Sound, frames_of, same_place
from tests.sound import RATE as SINK_RATE
from tests.sound import NullSink, null_sink  # noqa: F401

RATE = 24_000
PITCHES = (300.0, 700.0, 1_500.0, 3_000.0)


def words(lengths: tuple[float, ...], gap: float) -> tuple[np.ndarray, list[float]]:
    """A "sentence": one tone for each word, with silence in between; and where words begin, in seconds."""
    parts, begins, at = [], [], 0.0
    for pitch, length in zip(PITCHES, lengths, strict=True):
        silence = np.zeros(round(gap * RATE))
        time = np.arange(round(length * RATE)) / RATE
        parts += [silence, 0.3 * np.sin(2 * np.pi * pitch * time)]
        begins.append(at + gap)
        at += gap + length
    return np.concatenate(parts).astype(np.float32), begins


@pytest.mark.parametrize("word", range(4))
def test_another_take_goes_on_with_the_word_that_is_being_said(word: int) -> None:
    one, begins = words((0.3, 0.25, 0.4, 0.3), 0.08)
    other, theirs = words((0.2, 0.35, 0.25, 0.38), 0.14)
    frames = frames_of(one, RATE), frames_of(other, RATE)
    for into in (0.1, 0.2):
        found = same_place(*frames, begins[word] + into)
        assert theirs[word] - 0.06 <= found <= theirs[word] + 0.03, "where the word begins"
    assert same_place(*frames, 0.0) < theirs[0]


def test_a_sound_is_at_the_same_place_in_itself() -> None:
    one, begins = words((0.3, 0.25, 0.4, 0.3), 0.08)
    frames = frames_of(one, RATE)
    assert same_place(frames, frames, begins[2] + 0.1) == pytest.approx(begins[2], abs=0.05)
    assert same_place(frames, frames, 99.0) <= len(one) / RATE, "beyond its end"


def test_without_sound_one_begins_at_the_beginning() -> None:
    nothing = Sound(np.zeros(0, np.float32), RATE, "Nothing").frames
    assert same_place(nothing, frames_of(words((0.3,) * 4, 0.1)[0], RATE), 0.5) == 0.0
    silence = Sound(np.zeros(RATE, np.float32), RATE, "Silence").frames
    assert 0.0 <= same_place(silence, silence, 0.5) <= 0.5


def pitches(samples: np.ndarray) -> list[float]:
    """The strongest frequency of each tenth of a second that sounds, in hertz, each once in a row."""
    found: list[float] = []
    for start in range(0, len(samples) - SINK_RATE // 10, SINK_RATE // 10):
        part = samples[start : start + SINK_RATE // 10]
        if np.abs(part).max() > 0.02:
            power = np.abs(np.fft.rfft(part * np.hanning(len(part))))
            nearest = min(PITCHES, key=lambda pitch: abs(pitch - power.argmax() * 10))
            if found[-1:] != [nearest]:
                found.append(nearest)
    return found


@pytest.mark.slow
def test_the_sink_hears_the_word_again_and_not_the_beginning(null_sink: NullSink, qtbot: QtBot) -> None:  # noqa: F811
    one, begins = words((0.6, 0.6, 0.6, 0.6), 0.1)
    other, _ = words((0.7, 0.7, 0.7, 0.7), 0.15)
    player = Player()
    deck = Deck(player)
    player.open()
    deck.hear_row([Sound(one, RATE, "One"), Sound(other, RATE, "Other")], aligned=False)
    assert player.comparison.mode is Mode.RESTART
    deck.seek(begins[2] + 0.2)
    with null_sink.recording() as recording:
        qtbot.waitUntil(lambda: player.position > begins[2] + 0.3)
        deck.go_in_row(1)
        qtbot.waitUntil(lambda: player.position > 2.6)
        player.pause()
        qtbot.wait(300)
    deck.shut_down(wait=True)
    assert pitches(recording.samples) == [PITCHES[2], PITCHES[3]], "the third word, once more, and on to the fourth"
