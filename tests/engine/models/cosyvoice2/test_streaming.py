"""CosyVoice 2's tokens become audio while they come, and it is the audio of the whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paretone.models.cosyvoice2.hift import GENERATOR, PLAIN_CONVOLUTIONS, AudioStream, SeededNoise
from paretone.models.cosyvoice2.streaming import CosyDecoder
from paretone.models.networks.weight_norm import PARAMETRISED, stored_shapes
from tests.engine.models.cosyvoice2.small_acoustics import small_flow, small_prompt, small_speech, small_vocoder

TOLERANCE = 1e-4
SPEECH = small_speech(34)
FLOW, VOCODER = small_flow(), small_vocoder()


def decoder(seed: int = 0, speed: float = 1.0) -> CosyDecoder:
    return CosyDecoder(FLOW, VOCODER, small_prompt(7), seed, speed)


def streamed(one: CosyDecoder, size: int) -> list[np.ndarray]:
    parts = [one.push(SPEECH[start : start + size]) for start in range(0, len(SPEECH), size)]
    return [*parts, one.finish()]


@pytest.mark.parametrize("size", [1, 9, 34])
def test_streamed_audio_is_that_of_the_whole(size: int) -> None:
    one = decoder()
    parts = streamed(one, size)
    whole = one.whole(SPEECH)
    audio = np.concatenate(parts)
    assert len(audio) == 34 * 960 == len(whole.samples)
    assert np.abs(whole.samples).max() > 0.01
    assert np.abs(audio - whole.samples).max() <= TOLERANCE
    assert np.abs(one.mel - whole.mel).max() <= TOLERANCE
    assert sum(len(part) > 0 for part in parts) > (1 if size < 34 else 0)


def test_audio_lags_twenty_frames_behind_the_mel() -> None:
    stream, mel = AudioStream(VOCODER, SeededNoise(0, VOCODER.config)), torch.randn(1, 8, 60)
    lag = 60 - stream.push(mel).shape[-1] / VOCODER.config.samples_per_frame
    assert 19 < lag < 21


def test_noise_belongs_to_the_request() -> None:
    first, again, other = (np.concatenate(streamed(decoder(seed), 34)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_nothing_random_is_left_in_the_program() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    streamed(decoder(), 34)
    assert torch.equal(torch.get_rng_state(), before)


def test_at_once_is_the_same_audio_at_the_end() -> None:
    one = CosyDecoder(FLOW, VOCODER, small_prompt(7), at_once=True)
    *early, last = streamed(one, 5)
    assert not sum(map(len, early))
    assert np.abs(last - one.whole(SPEECH).samples).max() <= TOLERANCE


def test_another_speed_comes_at_the_end() -> None:
    one = decoder(speed=1.25)
    *early, last = streamed(one, 5)
    whole = one.whole(SPEECH)
    assert not sum(map(len, early))
    assert len(last) == int(68 / 1.25) * 480
    assert np.abs(last - whole.samples).max() <= TOLERANCE
    assert one.mel.shape == whole.mel.shape == (int(68 / 1.25), 8)


def test_no_token_gives_no_audio() -> None:
    for speed in (1.0, 1.25):
        assert len(decoder(speed=speed).finish()) == 0
    assert len(decoder().whole([]).samples) == 0


def test_one_token_gives_forty_milliseconds() -> None:
    one = decoder()
    assert len(one.push(SPEECH[:1])) == 0
    assert len(one.finish()) == 960


def test_files_saved_while_training_load() -> None:
    shapes = stored_shapes(VOCODER, PARAMETRISED, PLAIN_CONVOLUTIONS)
    weights = {f"{GENERATOR}{name}": torch.ones(shape) for name, shape in shapes.items()}
    vocoder = small_vocoder()
    vocoder.load_official(weights, "hift.pt")
    # A direction of ones has the length √n.
    assert torch.allclose(vocoder.conv_pre.weight, torch.tensor((8 * 7) ** -0.5))
