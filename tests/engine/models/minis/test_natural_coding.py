"""Who speaks, and what is said."""

from __future__ import annotations

import pytest
import soundfile
import torch

from paretone.audio.resampling import resample
from paretone.models.catalogue import voice
from paretone.models.minis.natural_decoder import FORMANT, LEVEL, PITCH, VOICE, VOICING
from paretone.models.minis.speaking import NaturalVoice, VoiceReader
from tests.tools.natural_voices import VOICES, NamedVoice


def voice_frames(pitch: float, formant: float, count: int = 40) -> torch.Tensor:
    frames = torch.randn(count, VOICE, generator=torch.Generator().manual_seed(0))
    frames[:, VOICING] = torch.where(torch.arange(count) % 3 > 0, 1.0, -1.0)
    frames[:, PITCH] += pitch
    frames[:, FORMANT], frames[:, LEVEL] = formant, 0.0
    return frames


def test_what_is_said_does_not_say_who_says_it():
    one, other = voice_frames(0.5, -1.0), voice_frames(-1.5, 0.5)
    said = NaturalVoice.of(one).said(one)
    torch.testing.assert_close(said, NaturalVoice.of(other).said(other))
    torch.testing.assert_close(NaturalVoice.of(other).frames(said), other)


def test_the_pitch_of_a_voice_is_that_of_its_voiced_frames():
    frames = voice_frames(0.5, -1.0)
    voiced = frames[:, VOICING] > 0
    assert NaturalVoice.of(frames).pitch == pytest.approx(float(frames[voiced, PITCH].mean()))
    frames[:, VOICING] = -1.0
    assert NaturalVoice.of(frames) == NaturalVoice(0.0, -1.0)


@pytest.fixture(scope="module")
def reader() -> VoiceReader:
    return VoiceReader()


@pytest.mark.parametrize("named", VOICES, ids=lambda named: named.name)
def test_formants_of_the_named_voices_are_read(reader: VoiceReader, named: NamedVoice) -> None:
    samples, rate = soundfile.read(voice(named.name).audio, dtype="float32")
    assert reader.formant_scale(samples, rate) == pytest.approx(named.formant, abs=0.006)


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
@pytest.mark.parametrize("name", ["anna", "clara", "ella"])
def test_the_rate_of_a_recording_makes_little_difference(reader: VoiceReader, name: str, rate: int) -> None:
    samples, own = soundfile.read(voice(name).audio, dtype="float32")
    other = reader.formant_scale(resample(samples, own, rate), rate)
    assert other == pytest.approx(reader.formant_scale(samples, own), abs=0.012), "voices are 0.02 and more apart"
