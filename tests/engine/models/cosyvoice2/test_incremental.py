"""Layers that look both ways give the same in parts as at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from paretone.models.cosyvoice2.config import HiftConfig
from paretone.models.cosyvoice2.hift import (
    HarmonicSource,
    IncrementalConv,
    InverseSpectrum,
    Progress,
    ReflectedStart,
    ResidualStack,
    SeededNoise,
    SourceSpectrum,
    Upsampler,
)
from tests.engine.models.cosyvoice2.no_noise import NoNoise

CONFIG = HiftConfig()
LAYERS = {
    "dilated": lambda: IncrementalConv(3, 4, 7, dilation=3, padding=9),
    "strided": lambda: IncrementalConv(3, 4, 30, stride=15, padding=7),
    "point": lambda: IncrementalConv(3, 4, 1),
    "upsampler of 8": lambda: Upsampler(3, 4, 16, 8, 4),
    "upsampler of 5": lambda: Upsampler(3, 4, 11, 5, 3),
    "upsampler of 3": lambda: Upsampler(3, 4, 7, 3, 2),
    "reflected start": ReflectedStart,
    "residual stack": lambda: ResidualStack(3, 7, (1, 3, 5)),
}
SIZES = [(1, 1, 1, 40, 3), (0, 2, 0, 44), (46, 0), (20, 20, 6)]


def in_parts(layer: nn.Module, x: Tensor, sizes: tuple[int, ...], unit: int = 1) -> list[Tensor]:
    progress, parts = Progress(), []
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
    whole = layer(x, Progress(last=True))
    assert torch.allclose(torch.cat(in_parts(layer, x, sizes), dim=-1), whole, atol=1e-6)


@torch.inference_mode()
def test_outputs_come_as_early_as_their_inputs_allow() -> None:
    conv = IncrementalConv(1, 1, 7, dilation=3, padding=9)
    assert [part.shape[-1] for part in in_parts(conv, torch.randn(1, 1, 40), (9, 1, 20, 10))] == [0, 1, 20, 19]


@torch.inference_mode()
def test_transform_and_inverse_are_pytorchs() -> None:
    x, window = torch.randn(1, 1, 960), torch.hann_window(CONFIG.window)
    frames = SourceSpectrum(CONFIG)(x, Progress(last=True))
    expected = torch.stft(x[:, 0], CONFIG.window, CONFIG.hop, window=window, return_complex=True)
    assert torch.allclose(frames, torch.cat([expected.real, expected.imag], dim=1), atol=1e-5)
    changed = frames * torch.rand_like(frames)
    inverse = InverseSpectrum(CONFIG)(changed, Progress(last=True))
    spectrum = torch.complex(*changed.chunk(2, dim=1))
    assert torch.allclose(inverse, torch.istft(spectrum, CONFIG.window, CONFIG.hop, window=window), atol=1e-5)


@pytest.mark.parametrize("sizes", [(1, 0, 2, 3), (0, 5, 1)])
@torch.inference_mode()
def test_transform_and_inverse_in_parts(sizes: tuple[int, ...]) -> None:
    transform, inverse = SourceSpectrum(CONFIG), InverseSpectrum(CONFIG)
    x = torch.randn(1, 1, 480 * sum(sizes))
    frames = transform(x, Progress(last=True))
    assert torch.allclose(torch.cat(in_parts(transform, x, sizes, 480), dim=-1), frames, atol=1e-6)
    expected = inverse(frames, Progress(last=True))
    frame_sizes = (3, 0, 50, frames.shape[-1] - 53)
    assert torch.allclose(torch.cat(in_parts(inverse, frames, frame_sizes), dim=-1), expected, atol=1e-6)


@pytest.mark.parametrize("sizes", [(1, 0, 2, 50, 47), (100, 0), (0, 99, 1)])
@torch.inference_mode()
def test_source_goes_on_where_it_stopped(sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    source, pitch = HarmonicSource(CONFIG), 300 * torch.rand(1, 100)
    whole = source(pitch, SeededNoise(5, CONFIG), Progress(last=True))
    noise = SeededNoise(5, CONFIG)
    parts = in_parts(lambda part, progress: source(part, noise, progress), pitch, sizes)
    assert torch.equal(torch.cat(parts, dim=-1), whole)
    assert not torch.equal(source(pitch, SeededNoise(6, CONFIG), Progress(last=True)), whole)


@pytest.mark.parametrize("rounded", [True, False])
@torch.inference_mode()
def test_source_interpolates_as_pytorch_does(rounded: bool) -> None:
    source = HarmonicSource(replace(CONFIG, float32_phases=rounded))
    phases = 3000 * torch.rand(1, 60, 9, generator=torch.Generator().manual_seed(0)).cumsum(dim=1)
    phases = phases.to(source.precision)
    expected = torch.nn.functional.interpolate(phases.mT, scale_factor=480, mode="linear").mT
    tolerance = 1e-6 if rounded else 1e-12
    assert torch.allclose(source._interpolated(phases, 0, 60), expected, rtol=tolerance)


@torch.inference_mode()
def test_phases_hardly_depend_on_the_last_digit_of_the_pitch() -> None:
    """Summed up in float32, as upstream has it, they depend on it ten times as much."""
    pitch = 300 * torch.rand(1, 600, generator=torch.Generator().manual_seed(0))
    other = pitch * (1 + 1e-7 * torch.randn(1, 600, generator=torch.Generator().manual_seed(1)))
    assert not torch.equal(pitch, other)
    apart = {}
    for rounded in (False, True):
        torch.manual_seed(0)
        source = HarmonicSource(replace(CONFIG, float32_phases=rounded))
        first, second = (source(one, NoNoise(CONFIG), Progress(last=True)) for one in (pitch, other))
        apart[rounded] = float((first - second).abs().max())
    assert apart[False] < 1e-4 < apart[True]


@torch.inference_mode()
def test_source_of_silence_is_constant() -> None:
    source = HarmonicSource(CONFIG)
    silence = source(torch.zeros(1, 3), NoNoise(CONFIG), Progress(last=True))
    assert silence.shape == (1, 1, 3 * 480)
    assert torch.equal(silence, source.l_linear.bias.tanh().expand_as(silence))
