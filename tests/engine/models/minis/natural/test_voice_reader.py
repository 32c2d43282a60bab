"""Formants of a recording, against those that its voice was made with."""

from __future__ import annotations

import pytest
import soundfile

from paretone.audio.resampling import resample
from paretone.models.catalogue import voice
from paretone.models.minis.natural.coding import VoiceReader
from paretone.training.recipes.natural_voices import VOICES, NamedVoice


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
