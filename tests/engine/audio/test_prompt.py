from __future__ import annotations

import re
import zlib

import numpy as np
import pytest
import soundfile

from paretone.audio.prompt import prepare_prompt
from paretone.audio.recording import Recording
from paretone.errors import AudioError
from paretone.models.catalogue import voice


def recording(rate: int, parts: list[tuple[float, int]]) -> Recording:
    """Square waves of (seconds, 16-bit level), one after the other."""
    waves = [np.where(np.arange(int(seconds * rate)) % 4 < 2, level, -level) for seconds, level in parts]
    return Recording((np.concatenate(waves) / 32768).astype(np.float32), rate)


# Lengths and checksums are those that pydub 0.25.1 gives with the official steps.
OFFICIAL = [
    (24000, [(0.5, 0), (2.0, 3000), (0.4, 0)], 49198, 2357893373),
    (16000, [(0.217, 40), (3.0, 5000), (2.5, 60), (3.0, 2000), (0.3, 300), (0.123, 150)], 133871, 1615617531),
    (44100, [(7.0, 3000), (1.5, 20), (6.0, 3000), (1.5, 20), (2.0, 3000)], 310856, 134675929),
    (22050, [(9.0, 3000), (0.3, 200), (9.0, 3000)], 199528, 202516193),
    (24000, [(14.0, 3000)], 289198, 3989300603),
    (48000, [(5.0, 4000), (0.2, 100), (5.0, 4000), (0.2, 100), (5.0, 4000)], 491995, 2765305974),
    (11025, [(1.0, 255), (0.5, 265), (0.5, 255)], 6052, 2973313982),
    (24000, [(3.0, 104), (2.0, 103), (3.0, 1000)], 73198, 1497969676),
]


@pytest.mark.parametrize(("rate", "parts", "length", "checksum"), OFFICIAL)
def test_gives_the_official_samples(rate: int, parts: list, length: int, checksum: int) -> None:
    prepared = prepare_prompt(recording(rate, parts))
    samples = np.round(prepared.samples * 32768).astype(np.int16)
    assert (len(samples), zlib.crc32(samples.tobytes())) == (length, checksum)
    assert prepared.sample_rate == rate
    assert prepared.samples.dtype == np.float32


def test_cutting_is_said_and_keeping_all_is_not() -> None:
    cut = prepare_prompt(recording(24000, [(14.0, 3000)]))
    assert cut.notes == ("The reference recording was cut to its first 12.0 s.",)
    assert prepare_prompt(recording(24000, [(3.0, 3000)])).notes == ()


def test_what_is_silent_throughout_is_refused() -> None:
    with pytest.raises(AudioError, match="silent throughout"):
        prepare_prompt(recording(24000, [(3.0, 0)]))


def spoken_at(gain: float) -> Recording:
    """The first shipped voice, ``gain`` dB louder, as a 16-bit file has it."""
    samples, rate = soundfile.read(voice().audio, dtype="float32")
    return Recording(np.round(samples * 10 ** (gain / 20) * 32768).astype(np.float32) / 32768, rate)


@pytest.mark.parametrize("gain", [-36, -46, -56])
def test_speech_that_the_official_rules_find_silent_is_raised(gain: int) -> None:
    usual, found = prepare_prompt(spoken_at(0)), prepare_prompt(spoken_at(gain))
    (note,) = found.notes
    assert re.fullmatch(r"The reference recording is very quiet; it was raised by \d+ dB\.", note)
    assert found.seconds == pytest.approx(usual.seconds, abs=0.15), "nothing of it is lost"
    assert np.abs(found.samples).max() == pytest.approx(np.abs(usual.samples).max(), rel=0.2)


@pytest.mark.parametrize("gain", [-6, -12, -20])
def test_quieter_speech_that_they_accept_stays_as_it_is(gain: int) -> None:
    given, found = spoken_at(gain), prepare_prompt(spoken_at(gain))
    assert np.isin(found.samples, given.samples).all() and found.notes == ()


def test_speech_that_they_take_for_silence_in_a_quiet_recording_is_said() -> None:
    """Official samples, as in every recording that is accepted; but it is said what that costs."""
    quiet = recording(24000, [(3.0, 104), (2.0, 103), (3.0, 1000)])
    (note,) = prepare_prompt(quiet).notes
    assert "counted as silence" in note and "raise it by about 17 dB" in note


def test_a_click_does_not_make_a_quiet_recording_loud() -> None:
    clicking = spoken_at(-36)
    clicking.samples[30_000] = 0.9
    found = prepare_prompt(clicking)
    assert "raised" in found.notes[0]
    assert found.seconds == pytest.approx(prepare_prompt(spoken_at(0)).seconds, abs=0.15)
    assert np.abs(found.samples).max() <= 1.0
