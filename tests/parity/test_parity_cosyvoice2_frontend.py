"""CosyVoice 2's features of a recording, against the official front ends."""

from __future__ import annotations

import pytest
from safetensors.torch import load_file
from torch import Tensor

from paretone.audio.prompt_resampling import resample
from paretone.models.cosyvoice2.speech_tokenizer import (
    ENCODER_RATE,
    SPEECH_RATE,
    kaldi_filter_bank,
    speaker_features,
    speech_mel,
    whisper_mel,
)
from tests.parity.fixtures import Fixture, assert_close, fixtures

TOLERANCE = 1e-4


def is_front_end(description: dict) -> bool:
    return {"whisper", "kaldi"} <= set(description)


def tensors(fixture: Fixture) -> dict[str, Tensor]:
    return load_file(fixture.folder / f"{fixture.name}.io.safetensors")


front_ends = pytest.mark.parametrize("fixture", fixtures("ar", is_front_end))


@front_ends
def test_parity_cosyvoice2_frontend_resampling(fixture: Fixture) -> None:
    golden, rate = tensors(fixture), fixture.description["input_sample_rate"]
    mono = golden["wav"].mean(dim=0)
    assert_close(resample(mono, rate, ENCODER_RATE), golden["wav_16k"][0], 1e-6, "wav_16k")
    assert_close(resample(mono, rate, SPEECH_RATE), golden["wav_24k"][0], 1e-6, "wav_24k")


@front_ends
def test_parity_cosyvoice2_frontend_features(fixture: Fixture) -> None:
    golden = tensors(fixture)
    assert_close(speech_mel(golden["wav_24k"][0]), golden["prompt_speech_feat"][0], TOLERANCE, "prompt_speech_feat")
    heard = golden["wav_16k"][0]
    assert_close(whisper_mel(heard), golden["whisper_log_mel128"][0], TOLERANCE, "whisper_log_mel128")
    assert_close(kaldi_filter_bank(heard), golden["kaldi_fbank80"], TOLERANCE, "kaldi_fbank80")
    assert_close(speaker_features(heard), golden["kaldi_fbank80_cmn"][0], TOLERANCE, "kaldi_fbank80_cmn")
