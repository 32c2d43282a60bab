"""The player through a real PortAudio stream into a real sound server, every recorded sample compared."""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication

from paretone.audio.resampling import resample
from paretone.measure.loudness import headroom
from paretone.setting.setting import Setting
from paretone.setting.take import Take
from paretone_app.audio.deck import Deck
from paretone_app.audio.mixer import FADE_SECONDS, NO_FADE, SILENCE, Jump, Mixer
from paretone_app.audio.player import LATENCY_SECONDS, Player
from tests.sound import RATE, NullSink, SinkRecording
from tests.workload import workload

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SWITCHES = workload(20, 8)
Outcome = TypeVar("Outcome")


def speech_like(pitch: float, seconds: float, seed: int, rate: int = RATE) -> np.ndarray:
    """Harmonics with syllables and breath: uncorrelated for other pitches, never the same twice."""
    time_axis = np.arange(round(seconds * rate)) / rate
    voiced = sum(np.sin(2 * np.pi * pitch * k * time_axis + k * k) / k for k in range(1, 8))
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 3.1 * time_axis)
    breath = np.random.default_rng(seed).standard_normal(len(time_axis))
    return (0.15 * voiced * syllables + 0.02 * breath).astype(np.float32)


def wait_until(condition: Callable[[], object], patience: float = 120.0) -> None:
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def cleanly(attempt: Callable[[Player], Outcome], starvations: int = 0) -> Outcome:
    """The outcome of a run without underruns, whose stream had to be waited for ``starvations`` times. What a starved
    machine spoils is set aside and done again, each time with twice as much sound on its way to the device."""
    for doubled in range(5):
        player = Player(latency=LATENCY_SECONDS * 2**doubled)
        player.open()
        try:
            outcome = attempt(player)
        finally:
            player.close()
        if player.underruns == 0 and player.starvations == starvations:
            return outcome
    pytest.fail(f"the last of five runs had {player.underruns} underruns and was starved {player.starvations} times")


def wait_for_all(recording: SinkRecording, expected: np.ndarray, player: Player) -> None:
    """Wait until all that is ``expected`` was recorded, and a little more. What an underrun spoilt may never be."""
    sounding = np.count_nonzero(expected)
    wait_until(lambda: player.underruns or np.count_nonzero(recording.samples) >= sounding)
    time.sleep(0.3)


def found_at(recorded: np.ndarray, expected: np.ndarray) -> int:
    """Sample at which ``expected`` begins in the recording."""
    probe_length = 512
    starts = np.flatnonzero(recorded[: len(recorded) - probe_length] == expected[0])
    places = [int(one) for one in starts if np.array_equal(recorded[one : one + probe_length], expected[:probe_length])]
    assert len(places) == 1, f"the beginning was found {len(places)} times in {len(recorded)} samples"
    return places[0]


def computed_anew(jumps: list[Jump], takes: list[np.ndarray], mixer: Mixer, frames: int) -> np.ndarray:
    """Expected sound from the first jump on, computed from the list of jumps alone."""

    def stretch(index: int, position: int, gain: float, length: int) -> np.ndarray:
        piece = np.zeros(length, np.float32)
        if index != SILENCE:
            part = takes[index][position : position + length]
            piece[: len(part)] = part * np.float32(gain)
        return piece

    first = jumps[0].frame
    # After a stream that had to be waited for, which is set aside, there is more of it.
    end = max(frames, jumps[-1].frame - first + mixer.fade_length)
    heard = np.zeros(end, np.float32)
    for jump, following in zip(jumps, [*jumps[1:], None], strict=True):
        start = jump.frame - first
        length = (following.frame - first if following else end) - start
        heard[start : start + length] = stretch(jump.entering, jump.entering_position, jump.entering_gain, length)
        if jump.law != NO_FADE:
            entering, leaving = mixer.fades[jump.law]
            fade = slice(start, start + mixer.fade_length)
            old = stretch(jump.leaving, jump.leaving_position, jump.leaving_gain, mixer.fade_length)
            heard[fade] = heard[fade] * entering + old * leaving
    return heard[:frames]


def test_every_sample_through_many_switches(null_sink: NullSink) -> None:
    seconds = 0.45 * SWITCHES
    takes = [speech_like(110 + 15 * number, seconds, number) for number in range(8)]

    def attempt(player: Player) -> tuple[np.ndarray, np.ndarray, list[Jump], Mixer]:
        assert player.rate == RATE
        player.load([(take, RATE) for take in takes])
        with null_sink.recording() as recording:
            time.sleep(0.3)
            player.play()
            began = time.monotonic()
            for turn in range(SWITCHES):
                time.sleep(max(0.0, began + 0.23 * (turn + 1) - time.monotonic()))
                player.choose(3 * (turn + 1) % len(takes))
            wait_until(lambda: player.mixer.settled and not player.playing)
            jumps = list(player.mixer.jumps)
            expected = computed_anew(jumps, takes, player.mixer, len(takes[0]))
            wait_for_all(recording, expected, player)
        return recording.samples, expected, jumps, player.mixer

    recorded, expected, jumps, mixer = cleanly(attempt)
    switches = [jump for jump in jumps if SILENCE not in (jump.leaving, jump.entering)]
    assert len(switches) == SWITCHES
    start = found_at(recorded, expected)
    np.testing.assert_array_equal(recorded[start : start + len(expected)], expected)
    assert not recorded[:start].any()
    assert not recorded[start + len(expected) :].any()
    own = max(np.abs(np.diff(take)).max() for take in takes)
    for jump in switches:
        at = start + jump.frame - jumps[0].frame
        steps = np.abs(np.diff(recorded[at - 1 : at + mixer.fade_length + 1]))
        assert steps.max() <= own


def test_what_streams_in_is_what_sounds(null_sink: NullSink) -> None:
    rate = 24000
    whole = speech_like(120, 3.0, 3, rate)
    expected = resample(whole, rate, RATE)

    def attempt(player: Player) -> np.ndarray:
        with null_sink.recording() as recording:
            time.sleep(0.3)
            player.begin_stream(rate)
            for piece in np.array_split(whole, 17):
                player.append(piece)
                time.sleep(0.02)
            player.end_stream()
            wait_until(lambda: not player.streaming)
            wait_for_all(recording, expected, player)
        return recording.samples

    recorded = cleanly(attempt)
    start = found_at(recorded, expected)
    np.testing.assert_array_equal(recorded[start : start + len(expected)], expected)
    assert not recorded[start + len(expected) :].any()


@pytest.mark.usefixtures("qapp")
def test_a_stream_that_would_clip_is_turned_down_without_a_step(null_sink: NullSink) -> None:
    """From full level to what its loud end needs within a fade; the finished take has one factor throughout."""
    level = np.interp(np.arange(3 * RATE), (2 * RATE, 2.1 * RATE), (1.0, 6.0))
    whole = (speech_like(120, 3.0, 8) * level).astype(np.float32)
    pieces = np.split(whole, (RATE, 2 * RATE))
    factor = headroom(whole)
    assert factor < 0.6 and headroom(whole[: 2 * RATE]) == 1

    def attempt(player: Player) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        deck = Deck(player)
        with null_sink.recording() as recording:
            time.sleep(0.3)
            deck.begin_stream(RATE)
            for piece in pieces[:2]:
                deck.append(piece)
            wait_until(lambda: player.position > 0.5)
            deck.append(pieces[2])
            deck.player.end_stream()
            wait_until(lambda: not player.streaming)
            jumps = list(player.mixer.jumps)
            expected = computed_anew(jumps, [whole], player.mixer, len(whole))
            wait_for_all(recording, expected, player)
        with null_sink.recording() as finished:
            deck.set_matching(False)
            deck.set_take("A", Take("1", "2026-01-01T00:00:00Z", "Text", "v", Setting("f5-mini"), RATE, whole))
            wait_until(lambda: QCoreApplication.processEvents() or deck.loaded)
            player.play()
            wait_until(lambda: player.mixer.settled and not player.playing)
            wait_for_all(finished, whole, player)
        changes = [jump.frame - jumps[0].frame for jump in jumps if jump.leaving != SILENCE != jump.entering]
        deck.analyser.shut_down()
        return recording.samples, expected, finished.samples, *changes

    recorded, expected, finished, change = cleanly(attempt)
    fade = round(FADE_SECONDS * RATE)
    heard = recorded[found_at(recorded, expected) :][: len(whole)]
    np.testing.assert_array_equal(heard, expected)
    assert 0.5 * RATE <= change <= 2 * RATE - fade, "while earlier pieces are heard"
    np.testing.assert_array_equal(heard[:change], whole[:change])
    np.testing.assert_array_equal(heard[change + fade :], whole[change + fade :] * np.float32(factor))
    audible = np.abs(whole[change : change + fade]) > 0.01
    gains = heard[change : change + fade][audible] / whole[change : change + fade][audible]
    steps = np.abs(np.diff(gains)) / np.diff(np.flatnonzero(audible))
    assert steps.max() < 1.01 * (1 - factor) / fade, "a straight line"
    assert np.abs(heard).max() <= 1

    played = whole * np.float32(factor)
    np.testing.assert_array_equal(finished[found_at(finished, played) :][: len(whole)], played)


def test_a_starved_stream_waits_in_silence_and_loses_nothing(null_sink: NullSink) -> None:
    first, second = speech_like(120, 0.8, 4), speech_like(150, 0.8, 5)

    def attempt(player: Player) -> np.ndarray:
        with null_sink.recording() as recording:
            time.sleep(0.3)
            player.begin_stream(RATE)
            player.append(first)
            wait_until(lambda: player.mixer.state.starving and player.mixer.state.position == len(first))
            time.sleep(0.3)
            player.append(second)
            player.end_stream()
            wait_until(lambda: not player.streaming)
            wait_for_all(recording, np.concatenate((first, second)), player)
        return recording.samples

    recorded = cleanly(attempt, starvations=1)
    one, two = found_at(recorded, first), found_at(recorded, second)
    np.testing.assert_array_equal(recorded[one : one + len(first)], first)
    np.testing.assert_array_equal(recorded[two : two + len(second)], second)
    assert two > one + len(first)
    assert not recorded[one + len(first) : two].any()
