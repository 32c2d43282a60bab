"""Tokens become a mel and sound, whole and piece by piece."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from paretone.errors import AudioError, Cancelled, TextError
from paretone.models.cosyvoice2 import hift
from paretone.models.cosyvoice2.adapter import CosyDecoder
from paretone.models.cosyvoice2.config import HiftConfig
from paretone.models.cosyvoice2.mel_flow import MelStream
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, TokenToMel
from paretone.models.networks import incremental as memories
from paretone.models.networks.layers import PARAMETRISED, stored_shapes
from tests.engine.models.cosyvoice2.small_release import NoNoise, small_flow, small_prompt, small_speech, small_vocoder
from tests.engine.recorder import Follower
from tests.workload import crossed

TOLERANCE = 1e-4
SPEECH = small_speech(34)
FLOW, VOCODER = small_flow(), small_vocoder()


def decoder(seed: int = 0, speed: float = 1.0) -> CosyDecoder:
    return CosyDecoder(FLOW, VOCODER, small_prompt(7), seed, speed)


def streamed(one: CosyDecoder, size: int) -> list[np.ndarray]:
    parts = [one.push(SPEECH[start : start + size]) for start in range(0, len(SPEECH), size)]
    return [*parts, one.finish()]


@pytest.mark.parametrize("size", [1, 34])
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
    stream, mel = hift.AudioStream(VOCODER, hift.SeededNoise(0, VOCODER.config)), torch.randn(1, 8, 60)
    lag = 60 - stream.push(mel).shape[-1] / VOCODER.config.samples_per_frame
    assert 19 < lag < 21


def test_the_whole_is_stopped_after_a_step() -> None:
    one = decoder()
    one.check = Follower(2).check
    with pytest.raises(Cancelled):
        one.whole(SPEECH)


def test_noise_belongs_to_the_request() -> None:
    first, again, other = (np.concatenate(streamed(decoder(seed), 34)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


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


def test_files_saved_while_training_load() -> None:
    shapes = stored_shapes(VOCODER, PARAMETRISED, hift.PLAIN_CONVOLUTIONS)
    weights = {f"{hift.GENERATOR}{name}": torch.ones(shape) for name, shape in shapes.items()}
    vocoder = hift.Hift.official(VOCODER.config, weights, "hift.pt")
    # A direction of ones has the length √n.
    assert torch.allclose(vocoder.conv_pre.weight, torch.tensor((8 * 7) ** -0.5))


# --- The flow ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def flow() -> TokenToMel:
    return small_flow()


def streamed_mel(flow: TokenToMel, prompt: AcousticPrompt, sizes: tuple[int, ...]) -> list[Tensor]:
    stream, parts = MelStream(flow, prompt), []
    for part in torch.tensor(SPEECH).split(list(sizes)):
        parts.append(stream.push(part.tolist()))
    return [*parts, stream.finish()]


@pytest.mark.parametrize(("prompt", "sizes"), crossed([0, 5, 7, 12], [(1,) * 34, (34,), (8, 20, 6), (33, 1)]))
def test_streamed_frames_are_those_of_the_whole(flow: TokenToMel, prompt: int, sizes: tuple[int, ...]) -> None:
    whole = MelStream(flow, small_prompt(prompt)).whole(SPEECH)
    parts = torch.cat(streamed_mel(flow, small_prompt(prompt), sizes), dim=-1)
    assert whole.shape[-1] == 2 * len(SPEECH)
    assert torch.allclose(parts, whole, atol=TOLERANCE)


def test_late_frames_are_projected_anew(flow: TokenToMel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of frames, what keys and values are made of is remembered in their place."""
    whole = MelStream(flow, small_prompt(7)).whole(SPEECH)
    monkeypatch.setattr(memories, "PROJECTED", 10)
    assert torch.allclose(torch.cat(streamed_mel(flow, small_prompt(7), (1,) * 34), dim=-1), whole, atol=TOLERANCE)


def test_frames_come_with_every_chunk_as_soon_as_the_look_ahead_is_there(flow: TokenToMel) -> None:
    counts = [part.shape[-1] for part in streamed_mel(flow, small_prompt(7), (1,) * 34)]
    coming = [index for index, count in enumerate(counts, 1) if count]
    # The prompt's second chunk lacks three tokens; the flow looks three further.
    assert coming == [6, 11, 16, 21, 26, 31, 35]
    assert [count for count in counts if count] == [6, 10, 10, 10, 10, 10, 12]


def test_refuses_more_than_five_minutes(flow: TokenToMel) -> None:
    stream = MelStream(flow, small_prompt(7), at_once=True)
    stream.push([0] * (7500 - 7))
    with pytest.raises(TextError, match="300 seconds"):
        stream.push([0])


def test_refuses_a_prompt_whose_parts_do_not_fit(flow: TokenToMel) -> None:
    prompt = small_prompt(7)
    with pytest.raises(AudioError, match="7 speech tokens"):
        MelStream(flow, AcousticPrompt(prompt.tokens, prompt.mel[:, 1:], prompt.speaker))


# --- Layers in parts --------------------------------------------------------------------------------------------------
CONFIG = HiftConfig()
LAYERS = {
    "dilated": lambda: hift.IncrementalConv(3, 4, 7, (9, 9), dilation=3),
    "strided": lambda: hift.IncrementalConv(3, 4, 30, (7, 7), stride=15),
    "point": lambda: hift.IncrementalConv(3, 4, 1, (0, 0)),
    "upsampler of 8": lambda: hift.Upsampler(3, 4, 16, 8, 4),
    "upsampler of 5": lambda: hift.Upsampler(3, 4, 11, 5, 3),
    "upsampler of 3": lambda: hift.Upsampler(3, 4, 7, 3, 2),
    "reflected start": hift.ReflectedStart,
    "causal": lambda: hift.IncrementalConv(3, 4, 7, (18, 0), dilation=3),
    "looking ahead": lambda: hift.IncrementalConv(3, 4, 5, (0, 4)),
    "causal upsampling": lambda: hift.CausalUpsampler(3, 4, 16, 8),
    "residual stack": lambda: hift.ResidualStack(3, 7, (1, 3, 5), causal=False),
}
SIZES = [(1, 1, 1, 40, 3), (0, 2, 0, 44)]


def in_parts(layer: nn.Module, x: Tensor, sizes: tuple[int, ...], unit: int = 1) -> list[Tensor]:
    progress, parts = hift.Progress(), []
    for number, part in enumerate(x.split([unit * size for size in sizes], dim=-1), 1):
        progress.last = number == len(sizes)
        parts.append(layer(part, progress))
    return parts


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", LAYERS)
@torch.inference_mode()
def test_parts_are_the_whole(name: str, sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layer, x = LAYERS[name](), torch.randn(1, 3, sum(sizes))
    whole = layer(x, hift.Progress(last=True))
    assert torch.allclose(torch.cat(in_parts(layer, x, sizes), dim=-1), whole, atol=1e-6)


@torch.inference_mode()
def test_outputs_come_as_early_as_their_inputs_allow() -> None:
    conv = hift.IncrementalConv(1, 1, 7, (9, 9), dilation=3)
    assert [part.shape[-1] for part in in_parts(conv, torch.randn(1, 1, 40), (9, 1, 20, 10))] == [0, 1, 20, 19]


@torch.inference_mode()
def test_transform_and_inverse_in_parts() -> None:
    sizes = (1, 0, 2, 3)
    transform, inverse = hift.SourceSpectrum(CONFIG), hift.InverseSpectrum(CONFIG)
    x = torch.randn(1, 1, 480 * sum(sizes))
    frames = transform(x, hift.Progress(last=True))
    assert torch.allclose(torch.cat(in_parts(transform, x, sizes, 480), dim=-1), frames, atol=1e-6)
    expected = inverse(frames, hift.Progress(last=True))
    frame_sizes = (3, 0, 50, frames.shape[-1] - 53)
    assert torch.allclose(torch.cat(in_parts(inverse, frames, frame_sizes), dim=-1), expected, atol=1e-6)


@torch.inference_mode()
def test_source_goes_on_where_it_stopped() -> None:
    torch.manual_seed(0)
    source, pitch = hift.HarmonicSource(CONFIG), 300 * torch.rand(1, 100)
    whole = source(pitch, hift.SeededNoise(5, CONFIG), hift.Progress(last=True))
    noise = hift.SeededNoise(5, CONFIG)
    parts = in_parts(lambda part, progress: source(part, noise, progress), pitch, (1, 0, 2, 50, 47))
    assert torch.equal(torch.cat(parts, dim=-1), whole)
    assert not torch.equal(source(pitch, hift.SeededNoise(6, CONFIG), hift.Progress(last=True)), whole)


@torch.inference_mode()
def test_phases_hardly_depend_on_the_last_digit_of_the_pitch() -> None:
    """Summed up in float32, as upstream has it, they depend on it ten times as much."""
    pitch = 300 * torch.rand(1, 600, generator=torch.Generator().manual_seed(0))
    other = pitch * (1 + 1e-7 * torch.randn(1, 600, generator=torch.Generator().manual_seed(1)))
    assert not torch.equal(pitch, other)
    apart = {}
    for rounded in (False, True):
        torch.manual_seed(0)
        source = hift.HarmonicSource(replace(CONFIG, float32_phases=rounded))
        first, second = (source(one, NoNoise(CONFIG), hift.Progress(last=True)) for one in (pitch, other))
        apart[rounded] = float((first - second).abs().max())
    assert apart[False] < 1e-4 < apart[True]
