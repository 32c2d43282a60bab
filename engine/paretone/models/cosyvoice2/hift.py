"""HiFT, the vocoder of CosyVoice 2 and 3: mel frames to audio, at once or exactly in parts.

HiFTNet (Li et al., arXiv 2309.09493): a harmonic source, HiFi-GAN's residual blocks with snake activations, and an
inverse short-time Fourier transform. Official names: ``cosyvoice/hifigan/generator.py`` and ``f0_predictor.py``; weight
normalisation is multiplied out.

CosyVoice 3's is causal but for a look-ahead of seven frames (``CausalHiFTGenerator``): convolutions see earlier
samples, upsampling repeats, the source's phases are constant within a frame and its noise is uniform.

Upstream vocodes each chunk with eight frames of the previous one and cross-fades. Here every layer, and the phase of
the source, continues from its state: parts equal the whole, audio lags by the look-ahead, nothing is computed twice.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.models.cosyvoice2.config import HiftConfig
from paretone.models.networks.layers import PARAMETRISED, load_normalised
from paretone.models.networks.shapes import Modules

# Non-causal layers on a signal that arrives in parts.
#
# A layer outputs what later inputs cannot change and keeps the inputs that later outputs need. At the end of the signal
# it pads as for the whole, so the parts together equal the layer's output for the whole signal, and each input is used
# once.


class Progress:
    """State of all layers for one signal."""

    def __init__(self, last: bool = False) -> None:
        self.last = last
        """Whether the current part is the last; true from the start for a complete signal."""
        self._kept: dict[Hashable, Any] = {}

    def take(self, layer: Hashable) -> Any:
        """State of ``layer`` from earlier parts; ``None`` for the first one."""
        return self._kept.pop(layer, None)

    def keep(self, layer: Hashable, what: Any) -> None:
        self._kept[layer] = what

    def aligned(self, place: Hashable, *signals: Tensor) -> list[Tensor]:
        """The part of several signals (B, channels, n) up to the shortest; the rest is kept."""
        if (before := self.take(place)) is not None:
            signals = tuple(torch.cat(pair, dim=-1) for pair in zip(before, signals, strict=True))
        count = min(one.shape[-1] for one in signals)
        self.keep(place, [one[..., count:].clone() for one in signals])
        return [one[..., :count] for one in signals]


class IncrementalConv(nn.Conv1d):
    """A convolution with zeros before and after the signal, in the signal's precision and on its device."""

    bias: Tensor

    def __init__(
        self, inputs: int, outputs: int, kernel: int, margins: tuple[int, int], stride: int = 1, dilation: int = 1
    ) -> None:
        """``margins`` are the zeros before and after."""
        super().__init__(inputs, outputs, kernel, stride, dilation=dilation)
        self.margins = margins

    def forward(self, x: Tensor, progress: Progress) -> Tensor:  # type: ignore[override]  # never called as a Conv1d
        """(B, channels, n) to the output that is now final, (B, channels, m)."""
        before, (left, right) = progress.take(self), self.margins
        if before is None and progress.last:
            return self._convolved(x, left) if left == right else self._convolved(F.pad(x, self.margins))
        x = F.pad(x, (left, 0)) if before is None else torch.cat([before, x], dim=-1)
        if progress.last:
            x = F.pad(x, (0, right))
        span, stride = self.dilation[0] * (self.kernel_size[0] - 1) + 1, self.stride[0]
        count = max((x.shape[-1] - span) // stride + 1, 0)
        progress.keep(self, x[..., count * stride :].clone())
        return self._convolved(x) if count else x.new_empty(len(x), self.out_channels, 0)

    def _convolved(self, x: Tensor, margin: int = 0) -> Tensor:
        weight, bias = self.weight.to(x), self.bias.to(x)
        return F.conv1d(x, weight, bias, self.stride, margin, self.dilation)


def transposed(
    layer: nn.Module, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, margin: int, progress: Progress
) -> Tensor:
    """Transposed convolution of ``layer``, cropped by ``margin`` outputs at both ends of the signal: (B, channels, n)
    to the output that is now final, (B, outputs, m)."""
    before = progress.take(layer)
    if before is None and progress.last:
        return F.conv_transpose1d(x, weight, bias, stride, margin)
    inputs, given = (x, margin) if before is None else (torch.cat([before[0], x], dim=-1), before[1])
    count, kernel = inputs.shape[-1], weight.shape[-1]
    # An output is final once all inputs that start at or before it are present.
    final = count * stride
    dropped = max(count - -(-(kernel - stride) // stride), 0)
    progress.keep(layer, (inputs[..., dropped:].clone(), max(final, given) - dropped * stride))
    if not count:
        return x.new_empty(len(x), weight.shape[1], 0)
    full = F.conv_transpose1d(inputs, weight, bias, stride)
    return full[..., given : full.shape[-1] - margin if progress.last else final]


def margins(kernel: int, causal: bool, dilation: int = 1) -> tuple[int, int]:
    """Zeros that keep a signal's length: before it if ``causal``, else on both sides."""
    both = dilation * (kernel - 1)
    return (both, 0) if causal else (both // 2, both // 2)


class CausalUpsampler(IncrementalConv):
    """Repeats each input ``factor`` times and smooths with earlier ones."""

    def __init__(self, inputs: int, outputs: int, kernel: int, factor: int) -> None:
        super().__init__(inputs, outputs, kernel, margins(kernel, causal=True))
        self.factor = factor

    def forward(self, x: Tensor, progress: Progress) -> Tensor:  # type: ignore[override]
        return super().forward(x.repeat_interleave(self.factor, dim=-1), progress)


class Upsampler(nn.ConvTranspose1d):
    """A transposed convolution, cropped at both ends of the signal."""

    def forward(self, x: Tensor, progress: Progress) -> Tensor:  # type: ignore[override]  # nor as a ConvTranspose1d
        """(B, channels, n) to the output that is now final, (B, channels, m)."""
        return transposed(self, x, self.weight, self.bias, self.stride[0], int(self.padding[0]), progress)


class ReflectedStart(nn.Module):
    """Prepends one sample to the signal: a copy of its second."""

    def forward(self, x: Tensor, progress: Progress) -> Tensor:
        """(B, channels, n) to the output that is now final, (B, channels, m); one sample more in total."""
        waiting = progress.take(self)
        if waiting is _STARTED:
            progress.keep(self, _STARTED)
            return x
        x = x if waiting is None else torch.cat([waiting, x], dim=-1)
        if x.shape[-1] < 2:
            progress.keep(self, x)
            return x[..., :0]
        progress.keep(self, _STARTED)
        return torch.cat([x[..., 1:2], x], dim=-1)


_STARTED = "started"


# Excitation of the HiFT vocoder: harmonics of the pitch in voiced frames, noise in unvoiced ones.
#
# Official: ``SourceModuleHnNSF`` and ``SineGen2`` of ``cosyvoice/hifigan/generator.py``, after neural source-filter
# models (Wang et al., arXiv 1904.12088). Upstream's random start phase is left out: it is added to a sample that the
# interpolation never reads. Phases are sums over the whole request, in float64; in float32, as upstream, their rounding
# after some seconds is louder than that of all other layers. Upstream's rounding is an option. The source is computed
# on the CPU, so that it is equal on all devices.
AMPLITUDE = 0.1
VOICED_NOISE = 0.003
UNVOICED_NOISE = AMPLITUDE / 3
LOWEST_VOICED = 10.0
"""Pitch in hertz below which a frame is unvoiced."""


def phase_precision(config: HiftConfig) -> torch.dtype:
    """Precision of phases, and of the pitch of a vocoder that is not causal."""
    return torch.float32 if config.float32_phases else torch.float64


class Noise(Protocol):
    """Random numbers of the source."""

    def draw(self, frames: int) -> Tensor:
        """Noise for the next frames, (1, frames · samples per frame, harmonics + 1): standard normal, or uniform from 0
        to 1 in a causal vocoder."""


class SeededNoise:
    """Noise that depends only on a seed and the number of preceding frames, not on their grouping or the device."""

    def __init__(self, seed: int, config: HiftConfig) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._shape = (config.samples_per_frame, config.harmonics + 1)
        self._draw = torch.rand if config.causal else torch.randn

    def draw(self, frames: int) -> Tensor:
        drawn = [self._draw(self._shape, generator=self._generator) for _ in range(frames)]
        return torch.cat([torch.empty(0, self._shape[1]), *drawn])[None]


class HarmonicSource(nn.Module):
    """Pitch to excitation. A frame is final once the next one is known, because its phases lead there; in a causal
    vocoder at once, because phases are constant within it."""

    def __init__(self, config: HiftConfig) -> None:
        super().__init__()
        self.samples, self.sample_rate = config.samples_per_frame, config.sample_rate
        self.partials = config.harmonics + 1
        self.precision = phase_precision(config)
        self.causal = config.causal
        self.l_linear = nn.Linear(self.partials, 1)

    def forward(self, pitch: Tensor, noise: Noise, progress: Progress) -> Tensor:
        """Pitch (1, n) in hertz of the next frames to samples (1, 1, m)."""
        before, pitch = progress.take(self), pitch.cpu()
        cycles = (pitch[..., None].to(self.precision) * torch.arange(1, self.partials + 1) / self.sample_rate) % 1
        if before is None:
            first, total = 0, cycles.new_zeros(1, 1, self.partials, dtype=torch.float64)
            phases = cycles[:, :0]
        else:
            first, total, phases, pending = before
            pitch = torch.cat([pending, pitch], dim=1)
        sums = torch.cat([total, cycles.double()], dim=1).cumsum(dim=1)
        phases = torch.cat([phases, sums[:, 1:].to(self.precision) * 2 * math.pi * self.samples], dim=1)
        count = pitch.shape[1] if progress.last or self.causal else max(pitch.shape[1] - 1, 0)
        given_out = first + count
        # Interpolation still needs the frame before the next output.
        earlier = min(given_out, 1)
        kept = phases.shape[1] - (pitch.shape[1] - count) - earlier
        progress.keep(self, (given_out, sums[:, -1:], phases[:, kept:].clone(), pitch[:, count:].clone()))
        sines = AMPLITUDE * self._interpolated(phases, first, count).sin().float()
        voiced = (pitch[:, :count, None] > LOWEST_VOICED).repeat_interleave(self.samples, dim=1)
        level = torch.where(voiced, VOICED_NOISE, UNVOICED_NOISE)
        excitation = torch.where(voiced, sines, 0.0) + level * noise.draw(count)
        return self.l_linear(excitation.to(self.l_linear.weight)).tanh().mT

    def _interpolated(self, phases: Tensor, first: int, count: int) -> Tensor:
        """Phases of the samples of ``count`` frames, (1, count · samples, partials), interpolated linearly between the
        middles of frames. ``phases`` (1, n, partials) start at the frame before frame ``first``, if any."""
        begin = max(first - 1, 0)
        if self.causal:
            return phases[:, first - begin : first - begin + count].repeat_interleave(self.samples, dim=1)
        index = torch.arange(first * self.samples, (first + count) * self.samples)
        # In float32, this reproduces the rounding of PyTorch's interpolation on a CPU, with fused multiplications.
        reciprocal = torch.tensor(1 / self.samples, dtype=self.precision).item()
        place = ((index.double() + 0.5) * reciprocal - 0.5).to(self.precision).clamp(min=0)
        left = place.long()
        weight = (place - left)[:, None]
        left, end = left - begin, phases.shape[1] - 1
        early, late = phases[:, left.clamp(max=end)], phases[:, (left + 1).clamp(max=end)]
        return ((1 - weight).double() * early.double() + (weight * late).double()).to(self.precision)


PITCH_AHEAD, AHEAD = 3, 4
"""Frames that the pitch and the first convolution of a causal vocoder wait for."""
SLOPE = 0.1
"""Slope of every leaky ReLU except the last, which has PyTorch's default."""
LARGEST_MAGNITUDE = 100.0
LOUDEST = 0.99
PLAIN_CONVOLUTIONS = ("source_downs.",)
"""Layers without weight normalisation."""
GENERATOR = "generator."
"""Prefix of all names in files saved during training."""


class Snake(nn.Module):
    """``x + sin²(αx) / α`` with an α per channel (Ziyin et al., arXiv 2006.08195)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        alpha = self.alpha[:, None]
        return x + (x * alpha).sin().square() / (alpha + 1e-9)


class ResidualStack(nn.Module):
    """Pairs of convolutions of one kernel size, dilated and plain, each pair with a residual connection."""

    def __init__(self, channels: int, kernel: int, dilations: tuple[int, ...], causal: bool) -> None:
        super().__init__()

        def convolution(dilation: int) -> IncrementalConv:
            around = margins(kernel, causal, dilation)
            return IncrementalConv(channels, channels, kernel, around, dilation=dilation)

        self.convs1 = Modules(convolution(dilation) for dilation in dilations)
        self.convs2 = Modules(convolution(1) for _ in dilations)
        self.activations1 = Modules(Snake(channels) for _ in dilations)
        self.activations2 = Modules(Snake(channels) for _ in dilations)

    def forward(self, x: Tensor, progress: Progress) -> Tensor:
        """(B, channels, n) to the output that is now final, (B, channels, m)."""
        for bend, dilated, bend_again, plain in zip(
            self.activations1, self.convs1, self.activations2, self.convs2, strict=True
        ):
            hidden = plain(bend_again(dilated(bend(x), progress)), progress)
            x, hidden = progress.aligned((self, plain), x, hidden)
            x = x + hidden
        return x


class PitchPredictor(nn.Module):
    """Mel frames to their fundamental frequency."""

    def __init__(self, config: HiftConfig) -> None:
        super().__init__()
        self.precision = torch.float64 if config.causal else phase_precision(config)
        ahead = IncrementalConv(config.bands, config.pitch_channels, PITCH_AHEAD + 1, (0, PITCH_AHEAD))
        layers: list[nn.Module] = [ahead, nn.ELU()] if config.causal else []
        for inputs in (config.bands, *[config.pitch_channels] * 4)[config.causal :]:
            layers += [IncrementalConv(inputs, config.pitch_channels, 3, margins(3, config.causal)), nn.ELU()]
        self.condnet = Modules(layers)
        self.classifier = nn.Linear(config.pitch_channels, 1)

    def forward(self, mel: Tensor, progress: Progress) -> Tensor:
        """(1, bands, n) to the output that is now final, (1, m) in hertz."""
        # Apple's GPUs have no float64.
        x = (mel.cpu() if mel.device.type == "mps" else mel).to(self.precision)
        for layer in self.condnet:
            x = layer(x, progress) if isinstance(layer, IncrementalConv) else layer(x)
        # Product and sum are separate as upstream, because rounding accumulates.
        return (x[0].T @ self.classifier.weight.to(x).T + self.classifier.bias.to(x))[None, :, 0].abs()


class SourceSpectrum(nn.Module):
    """Short-time Fourier transform with centred frames, real parts before imaginary ones."""

    kernel: Tensor

    def __init__(self, config: HiftConfig) -> None:
        super().__init__()
        self.hop, self.margin = config.hop, config.window // 2
        angles, window = _angles(config.window), torch.hann_window(config.window)
        self.register_buffer("kernel", torch.cat([angles.cos(), -angles.sin()])[:, None] * window, persistent=False)

    def forward(self, x: Tensor, progress: Progress) -> Tensor:
        """Samples (1, 1, n) to the frames that are now final, (1, window + 2, m)."""
        before = progress.take(self)
        if before is None and not x.shape[-1]:
            return x.new_empty(1, len(self.kernel), 0)
        start = x[..., 1 : self.margin + 1].flip(-1) if before is None else before
        x = torch.cat([start, x], dim=-1)
        if progress.last:
            x = torch.cat([x, x[..., -self.margin - 1 : -1].flip(-1)], dim=-1)
        if x.shape[-1] < self.kernel.shape[-1]:
            progress.keep(self, x)
            return x.new_empty(1, len(self.kernel), 0)
        frames = F.conv1d(x, self.kernel, stride=self.hop)
        progress.keep(self, x[..., frames.shape[-1] * self.hop :].clone())
        return frames


class InverseSpectrum(nn.Module):
    """Inverse of :class:`SourceSpectrum`: overlap-add of windowed frames, divided by the sum of squared windows."""

    kernel: Tensor

    def __init__(self, config: HiftConfig) -> None:
        super().__init__()
        self.hop, self.margin = config.hop, config.window // 2
        angles, window = _angles(config.window), torch.hann_window(config.window)
        twice = torch.full((len(angles), 1), 2.0)
        twice[0] = twice[-1] = 1.0
        waves = torch.cat([twice * angles.cos(), -twice * angles.sin()]) * window / config.window
        kernel = torch.zeros(len(waves) + 1, 2, config.window)
        kernel[:-1, 0], kernel[-1, 1] = waves, window.square()
        self.register_buffer("kernel", kernel, persistent=False)

    def forward(self, frames: Tensor, progress: Progress) -> Tensor:
        """Frames (1, window + 2, n) to the samples that are now final, (1, m)."""
        inputs = torch.cat([frames, torch.ones_like(frames[:, :1])], dim=1)
        sums = transposed(self, inputs, self.kernel, None, self.hop, self.margin, progress)
        return sums[:, 0] / sums[:, 1]


def _angles(window: int) -> Tensor:
    """Angle of each frequency at each sample, (window // 2 + 1, window) in radians."""
    return torch.outer(torch.arange(window // 2 + 1), torch.arange(window)) % window * (2 * math.pi / window)


class Hift(nn.Module):
    """The vocoder, always in float32."""

    def __init__(self, config: HiftConfig = HiftConfig()) -> None:
        super().__init__()
        self.config = config
        stages = range(len(config.upsampling))
        widths = [config.channels >> stage for stage in range(len(stages) + 1)]
        spectrum = config.window + 2
        self.m_source = HarmonicSource(config)
        causal = config.causal
        size, around = (AHEAD + 1, (0, AHEAD)) if causal else (7, margins(7, causal))
        self.conv_pre = IncrementalConv(config.bands, config.channels, size, around)
        self.ups: Modules[Upsampler | CausalUpsampler] = Modules(
            CausalUpsampler(widths[stage], widths[stage + 1], kernel, factor)
            if causal
            else Upsampler(widths[stage], widths[stage + 1], kernel, factor, (kernel - factor) // 2)
            for stage, factor, kernel in zip(stages, config.upsampling, config.upsampling_kernels, strict=True)
        )
        self.source_downs: Modules[IncrementalConv] = Modules()
        self.source_resblocks: Modules[ResidualStack] = Modules()
        for stage, kernel in zip(stages, config.source_kernels, strict=True):
            factor = math.prod(config.upsampling[stage + 1 :])
            size = 1 if factor == 1 else 2 * factor
            around = (factor - 1, 0) if causal else ((size - factor) // 2,) * 2
            self.source_downs.append(IncrementalConv(spectrum, widths[stage + 1], size, around, factor))
            self.source_resblocks.append(ResidualStack(widths[stage + 1], kernel, config.dilations, causal))
        self.resblocks = Modules(
            ResidualStack(width, kernel, config.dilations, causal) for width in widths[1:] for kernel in config.kernels
        )
        self.conv_post = IncrementalConv(widths[-1], spectrum, 7, margins(7, causal))
        self.f0_predictor = PitchPredictor(config)
        self.reflected_start = ReflectedStart()
        self.source_spectrum = SourceSpectrum(config)
        self.inverse_spectrum = InverseSpectrum(config)

    def source(self, mel: Tensor, noise: Noise, progress: Progress) -> Tensor:
        """Final excitation (1, 1, m) of the next frames ``mel`` (1, bands, n)."""
        return self.m_source(self.f0_predictor(mel, progress), noise, progress)

    def decode(self, mel: Tensor, source: Tensor, progress: Progress) -> Tensor:
        """Final audio of the next frames ``mel`` (1, bands, n) and excitation ``source`` (1, 1, m)."""
        spectrum = self.source_spectrum(source, progress)
        x = self.conv_pre(mel, progress)
        kernels = len(self.config.kernels)
        for stage, upsample in enumerate(self.ups):
            x = upsample(F.leaky_relu(x, SLOPE), progress)
            if stage == len(self.ups) - 1:
                x = self.reflected_start(x, progress)
            excited = self.source_resblocks[stage](self.source_downs[stage](spectrum, progress), progress)
            x, excited = progress.aligned((self, stage, "source"), x, excited)
            x = x + excited
            stacks = self.resblocks[stage * kernels : (stage + 1) * kernels]
            first, *others = progress.aligned((self, stage, "stacks"), *(one(x, progress) for one in stacks))
            x = sum(others, first) / kernels
        logarithm, phase = self.conv_post(F.leaky_relu(x), progress).chunk(2, dim=1)
        magnitude, phase = logarithm.exp().clip(max=LARGEST_MAGNITUDE), phase.sin()
        frames = torch.cat([magnitude * phase.cos(), magnitude * phase.sin()], dim=1)
        return self.inverse_spectrum(frames, progress).clamp(-LOUDEST, LOUDEST)

    @classmethod
    def official(cls, config: HiftConfig, weights: Mapping[str, Tensor], where: str) -> Hift:
        """Load the tensors of ``hift.pt``, strictly. Raises :class:`paretone.errors.CheckpointError`."""
        made = cls(config)
        weights = {name.removeprefix(GENERATOR): value for name, value in weights.items()}
        load_normalised(made, weights, where, PARAMETRISED, PLAIN_CONVOLUTIONS)
        return made.eval().requires_grad_(False)


class AudioStream:
    """Audio of one request in parts, equal to decoding at once."""

    def __init__(self, vocoder: Hift, noise: Noise) -> None:
        self._vocoder, self._noise, self._progress = vocoder, noise, Progress()

    @torch.inference_mode()
    def push(self, mel: Tensor, last: bool = False) -> Tensor:
        """Samples (1, m) that are final once ``mel`` (1, bands, n) is appended."""
        self._progress.last = last
        source = self._vocoder.source(mel, self._noise, self._progress)
        return self._vocoder.decode(mel, source, self._progress)
