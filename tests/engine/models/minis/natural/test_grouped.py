from __future__ import annotations

import pytest
import soundfile
import torch

from paretone.audio.mel import MelFrontEnd
from paretone.models.minis.natural_vocoder import GROUP_HOP, GROUPED, GroupedCodec, LatentVocoder
from paretone.models.shipped_voices import shipped_voices
from paretone.models.vocoders import load_vocoder
from paretone.paths import resource


@pytest.fixture(scope="module")
def codec() -> GroupedCodec:
    vocoder = load_vocoder(resource("models", "natural-vocoder"), torch.device("cpu"))
    assert isinstance(vocoder, LatentVocoder)
    return GroupedCodec(vocoder)


@pytest.mark.parametrize("voice", shipped_voices(), ids=lambda one: one.id)
def test_a_shipped_voice_comes_back(codec: GroupedCodec, voice) -> None:
    samples = torch.from_numpy(soundfile.read(voice.audio, dtype="float32")[0])[:48_000]
    mel = MelFrontEnd()(samples)
    groups = codec.encode(mel)
    assert groups.shape == (1, len(samples) // GROUP_HOP, GROUPED)
    copy = codec(groups, 0)
    frames = min(len(copy.mel), mel.shape[1])
    assert (torch.from_numpy(copy.mel[:frames]) - mel[0, :frames]).abs().mean() < 0.6


def test_speech_after_a_prompt_is_decoded_as_if_with_it(codec: GroupedCodec) -> None:
    samples = torch.from_numpy(soundfile.read(shipped_voices()[0].audio, dtype="float32")[0])[:48_000]
    groups = codec.encode(MelFrontEnd()(samples))
    whole, after = codec(groups, 0), codec(groups, 40)
    assert len(after.samples) == len(whole.samples) - 40 * GROUP_HOP
    # The phase of the pulses and the noise differ, and so do the samples.
    levels = [torch.from_numpy(one.mel[-len(after.mel) + 4 :]) for one in (whole, after)]
    assert (levels[0] - levels[1]).abs().mean() < 0.35
