"""Sounds that are played alone are equally loud."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from paretone.measure.loudness import HIGHEST_PEAK, integrated_loudness
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Take
from paretone_app.audio.analysis import Analyser, Analysis, analysed
from paretone_app.audio.deck import Deck
from paretone_app.audio.player import Mode, Player
from paretone_app.audio.sound import ALONE_LUFS, Envelope, Sound, frames_of, same_place
from tests.sound import RATE as SINK_RATE
from tests.sound import NullSink

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
    programme = player.mixer.programme
    assert deck.gain == programme.gains[0] == pytest.approx(1 / 1.64, abs=1e-3)
    heard = programme.recordings[0].samples * programme.gains[0]
    peaks = [float(np.abs(part[1000:-1000]).max()) for part in np.array_split(heard, 3)]
    assert peaks == pytest.approx([0.5 / 1.64, 1.0, 0.5 / 1.64], abs=0.02), "one factor"
    deck.begin_stream(RATE)
    assert deck.gain == player.mixer.programme.gains[0] == 1.0
    deck.shut_down()


def test_pieces_make_the_same_outline_as_the_whole() -> None:
    samples = np.random.default_rng(0).uniform(-1, 1, 50_003).astype(np.float32)
    whole, grown = Envelope(24000, samples), Envelope(24000)
    for piece in np.array_split(samples, 17):
        grown.append(piece)
    assert whole.seconds == grown.seconds == len(samples) / 24000
    np.testing.assert_array_equal(whole.columns(300, whole.seconds), grown.columns(300, grown.seconds))


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


@pytest.mark.parametrize("word", [0, 2])
def test_another_take_goes_on_with_the_word_that_is_being_said(word: int) -> None:
    one, begins = words((0.3, 0.25, 0.4, 0.3), 0.08)
    other, theirs = words((0.2, 0.35, 0.25, 0.38), 0.14)
    frames = frames_of(one, RATE), frames_of(other, RATE)
    for into in (0.1, 0.2):
        found = same_place(*frames, begins[word] + into)
        assert theirs[word] - 0.06 <= found <= theirs[word] + 0.03, "where the word begins"
    assert same_place(*frames, 0.0) < theirs[0]


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
def test_the_sink_hears_the_word_again_and_not_the_beginning(null_sink: NullSink, qtbot: QtBot) -> None:
    # The third is long, so that it still sounds when a busy machine comes to switch.
    one, begins = words((0.6, 0.6, 2.4, 0.6), 0.1)
    other, theirs = words((0.7, 0.7, 2.7, 0.7), 0.15)
    player = Player()
    deck = Deck(player)
    player.open()
    deck.hear_row([Sound(one, RATE, "One"), Sound(other, RATE, "Other")], aligned=False)
    assert player.comparison.mode is Mode.RESTART
    deck.seek(begins[2] + 0.2)
    with null_sink.recording() as recording:
        qtbot.waitUntil(lambda: player.position > begins[2] + 0.3)
        deck.go_in_row(1)
        qtbot.waitUntil(lambda: player.position > theirs[3] + 0.3)
        player.pause()
        qtbot.wait(300)
    deck.shut_down()
    assert pitches(recording.samples) == [PITCHES[2], PITCHES[3]], "the third word, once more, and on to the fourth"


def take(level: float) -> Take:
    said, noise = ("one", "2026-11-21", "Text."), np.random.default_rng(3).standard_normal(RATE).astype(np.float32)
    return Take(*said, "anna", Setting("f5-mini"), RATE, level * noise, measurements=Measurements(1.0, 1.0))


@pytest.fixture
def threads() -> list[int]:
    return []


@pytest.fixture
def analyser(threads: list[int], qapp) -> Iterator[Analyser]:
    made = Analyser(lambda samples, rate: threads.append(threading.get_ident()))
    yield made
    made.shut_down()


def found(*takes: Take | None) -> Analysis:
    return analysed(takes, Analysis(), lambda samples, rate: None)


def test_gains_make_both_equally_loud_and_none_louder() -> None:
    quiet, loud = found(take(0.02), take(0.1)).gains
    assert quiet / loud == pytest.approx(5.0, rel=1e-3)
    assert found(take(0.02), None).gains == (1.0, 1.0)


def test_takes_over_full_scale_are_turned_down_alike() -> None:
    quiet, loud = take(0.1), take(1.0)
    alone, both = found(loud, None), found(quiet, loud)
    assert np.abs(loud.samples * alone.gains[0]).max() <= 1
    assert both.headroom == alone.headroom < 1, "one factor, so that a difference in level is heard as it is"


def test_only_the_last_takes_are_reported_and_from_another_thread(
    analyser: Analyser, threads: list[int], qtbot: QtBot
) -> None:
    reported: list[Analysis] = []
    analyser.done.connect(reported.append)
    first, second = take(0.05), take(0.1)
    analyser.analyse((first, None))
    analyser.analyse((first, second))
    assert analyser.busy
    qtbot.waitUntil(lambda: bool(reported))
    assert [one.takes for one in reported] == [(first, second)]
    assert not analyser.busy and threads and threading.get_ident() not in threads
