"""Natural speech from 34 numbers, 80 times a second: the second half of a small synthesiser's decoder.

``hibari-tts`` (Maureese Williams, Apache-2.0, distilled from Kokoro-82M) turns phonemes into five spectra per frame and
these into audio. The output of the fourth of its decoder's eight blocks is a latent that a model can learn to generate;
this module is the rest: 34 numbers, four blocks and a head to spectra, pulses and noise, and the inverse transform. The
network's layout is hibari's from its fifth block on: ConvNeXt blocks, a norm, and one linear layer. Its weights are
8-bit integers with one scale per matrix, and stay so in the file.

A *latent frame* is 34 numbers: 32 principal components of the output of the teacher's fourth decoder block, log f0
(interpolated in unvoiced frames), and voicing, 1 or −1. The components have mean zero and variance one over the
teacher's speech. A *voice frame* adds two properties of a voice to a latent frame: the formant scale and the level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from paretone.models.files.checkpoints import in_float32, loaded_strictly, read_weights
from paretone.models.kernels.products import PackableLinear, packed
from paretone.models.networks.shapes import Modules
from paretone.models.networks.vocos import ConvNeXtBlock
from paretone.paths import resource

SAMPLE_RATE = 24_000
HOP = 300
"""Samples per latent frame: 80 frames per second."""
MEL_HOP = 256
"""Samples per mel frame."""
WINDOW = 1_200
"""Samples of the inverse transform's window."""
BINS = WINDOW // 2 + 1
HIDDEN = 256
"""Width of the decoder's blocks, and of the components' source."""
COMPONENTS = 32
PITCH, VOICING, FORMANT, LEVEL = range(COMPONENTS, COMPONENTS + 4)
"""Columns after the components."""
LATENT = COMPONENTS + 2
VOICE = LATENT + 2
LOWEST_VOICED = 40.0
"""Pitch in hertz below which a frame is unvoiced."""
PITCH_MEAN, PITCH_SCALE = 5.25, 0.25
"""Mean and scale of the natural logarithm of f0 in hertz."""
FORMANT_MEAN, FORMANT_SCALE = 0.985, 0.04
"""Normalisation of the formant scale of a voice frame: 1.0 is the teacher's own vocal tract, less a longer one."""
LEVEL_MEAN, LEVEL_SCALE = 0.776, 0.5
"""Normalisation of the level, ln of amplitude over the teacher's: at the mean, the RMS is an F5 prompt's, 0.1."""


# Scale all frequencies of spectra, for another vocal tract.
#
# Magnitudes are interpolated between bins. Phases cannot be: they change by up to half a turn per bin, and anything
# between two of them would be arbitrary (DistillMOS of the teacher's voice drops from 4.4 to 3.8 at a scale of 1.01).
# They are taken from the same signal in time, played faster by the scale.
_OVERSAMPLING = 2
"""Points per sample for linear interpolation in time; more do not sound better."""


def moved_magnitudes(logarithms: Tensor, scale: Tensor) -> Tensor:
    """Log magnitudes (…, frames, bins) with frequencies times ``scale`` (frames,)."""
    source = (torch.arange(BINS, device=scale.device) / scale[:, None]).clamp(0, BINS - 1)
    return _between(logarithms, source)


def moved_phases(spectrum: Tensor, scale: Tensor, centre: int) -> Tensor:
    """Phases, unit complex numbers (frames, bins), of a complex ``spectrum`` (frames, bins) with frequencies times
    ``scale`` (frames,). ``centre``: the sample of the window that stays in place, 0 for a filter and the window's
    middle for a signal."""
    size = WINDOW * _OVERSAMPLING
    half = WINDOW // 2
    # Zeros above the highest bin upsample the signal.
    sound = torch.fft.irfft(spectrum, size).roll((half - centre) * _OVERSAMPLING, 1)
    steps = torch.arange(-half, half, device=scale.device)
    source = (steps * scale[:, None] + half) * _OVERSAMPLING
    outside = (source < 0) | (source > size - 1)
    faster = _between(sound, source.clamp(0, size - 1)).masked_fill(outside, 0.0)
    return torch.fft.rfft(faster.roll(centre - half, 1)).sgn()


def _between(values: Tensor, places: Tensor) -> Tensor:
    """``values`` (…, frames, n) at fractional ``places`` (frames, m); NaN in a place gives NaN."""
    low = places.nan_to_num().long()
    high = (low + 1).clamp(max=values.shape[-1] - 1)
    early, late = (values.gather(-1, one.expand(*values.shape[:-1], -1)) for one in (low, high))
    return torch.lerp(early, late, places - low)


BLOCKS = 4
INNER = 768
EPSILON = 1e-5
SCALE = ".scale"
"""Suffix of the scales' names in the file."""


@dataclass(frozen=True)
class Spectra:
    """Output of the network, each (frames, bins): natural logarithms of magnitudes, and phases as unit complex
    numbers."""

    harmonic: Tensor
    harmonic_phase: Tensor
    noise: Tensor
    free: Tensor
    """Spectrum of the part independent of pulses and noise."""
    free_phase: Tensor

    def warped(self, scale: Tensor) -> Self:
        """Scale all frequencies by ``scale`` (frames,); below 1: a longer vocal tract. NaN in it gives NaN spectra."""
        harmonic, noise, free = moved_magnitudes(torch.stack([self.harmonic, self.noise, self.free]), scale)
        harmonic_phase = moved_phases(self._filter, scale, centre=0)
        return type(self)(harmonic, harmonic_phase, noise, free, moved_phases(self._free, scale, centre=WINDOW // 2))

    def louder(self, level: Tensor) -> Self:
        """Amplify by ``level`` (frames,), natural logarithms of a gain."""
        by = level[:, None]
        return type(self)(self.harmonic + by, self.harmonic_phase, self.noise + by, self.free + by, self.free_phase)

    def shaped(self, scale: Tensor | None, level: Tensor | None) -> Self:
        spectra = self if scale is None else self.warped(scale)
        return spectra if level is None else spectra.louder(level)

    def spectrum(self, pulses: Tensor, noise: Tensor) -> Tensor:
        """(frames, bins) complex64 of the speech, from the spectra of the pulses and of white noise (frames, bins)."""
        return self._filter * pulses + _magnitude(self.noise) * noise + self._free

    @property
    def _filter(self) -> Tensor:
        return _magnitude(self.harmonic) * self.harmonic_phase

    @property
    def _free(self) -> Tensor:
        return _magnitude(self.free) * self.free_phase


def _magnitude(logarithm: Tensor) -> Tensor:
    return logarithm.clamp(max=7.0).exp()


class SpectralNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = Modules(ConvNeXtBlock(HIDDEN, INNER, EPSILON) for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(HIDDEN, eps=EPSILON)
        self.head = PackableLinear(HIDDEN, 5 * BINS)

    def forward(self, hidden: Tensor) -> Spectra:
        """Hidden frames (B, 256, frames) to spectra of all items' frames, one after another."""
        for block in self.blocks:
            hidden = block(hidden)
        return self.out(hidden.mT.flatten(0, 1))

    def out(self, hidden: Tensor) -> Spectra:
        """Spectra from the output of the last block, (frames, 256)."""
        harmonic, turns, noise, free, phase = self.head(self.norm(hidden)).chunk(5, dim=1)
        return Spectra(harmonic, turned(turns.tanh() * torch.pi), noise, free, turned(phase))


def turned(phase: Tensor) -> Tensor:
    """Phases in radians to unit complex numbers, in a third of the time of ``torch.polar``."""
    phase = phase.float()  # There are no complex numbers of bfloat16, in which parts of a training compute.
    return torch.complex(phase.cos(), phase.sin())


def dequantised(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a file in float32: integer weights times their scales."""
    return {
        name: value * weights[name + SCALE] if name + SCALE in weights else value
        for name, value in in_float32(weights).items()
        if not name.endswith(SCALE)
    }


# Excitation of natural speech: pulses at the pitch, and noise.
#
# The pulses have every harmonic below 11 kHz at equal amplitude, and are silent in unvoiced frames. Pitch is
# interpolated between the middles of frames; phases are summed in float64. Noise is drawn in the frequency domain.
HIGHEST_HARMONIC = 11_000.0
SMALLEST_SINE = 2e-3
"""Least absolute value of 2 · sin(phase / 2); closer to a pulse's peak, the limit is used."""
_HALF = WINDOW // 2


class SeededNoise:
    """Noise that depends only on a seed and the number of preceding frames, not on their grouping or the device."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def draw(self, frames: int) -> Tensor:
        """(frames, bins) complex64 of the next frames, standard normal in both parts."""
        drawn = self._generator.standard_normal((frames, BINS, 2), dtype=np.float32)
        return torch.view_as_complex(torch.from_numpy(drawn))


class PulseTrain:
    """Pitch to pulses; samples are final once the frame after them is known."""

    def __init__(self) -> None:
        self._known = torch.zeros(0)
        """Pitch of the frame before the next sample, if any, and of later frames."""
        self._given = 0
        self._turns = torch.zeros(1, dtype=torch.float64)
        """Sum of the pitch of all samples so far."""
        self._first = 0

    def push(self, pitch: Tensor, last: bool = False) -> Tensor:
        """Pitch (n,) in hertz of the next frames, with ``last`` the last ones, 0 if unvoiced, to samples (m,)."""
        self._known = torch.cat([self._known, pitch.float().cpu()])
        frames = self._first + len(self._known)
        end = frames * HOP if last else max(frames * HOP - HOP // 2, 0)
        samples = torch.arange(self._given, max(end, self._given))
        if not len(samples):
            return torch.zeros(0)
        middle = samples - HOP // 2
        left = torch.div(middle, HOP, rounding_mode="floor")
        weight = ((middle - left * HOP).float() + 0.5) / HOP
        last = len(self._known) - 1
        early, late = (self._known[(left + step - self._first).clamp(0, last)] for step in (0, 1))
        pulses = self._pulses(early * (1 - weight) + late * weight)
        keep_from = max(int((end - HOP // 2) // HOP), self._first)
        self._known, self._first, self._given = self._known[keep_from - self._first :], keep_from, end
        return pulses

    def _pulses(self, pitch: Tensor) -> Tensor:
        """Σ cos(h·t) over the harmonics h = 1 … H, which is sin((H + ½)t) / (2 sin(t/2)) − ½."""
        voiced = pitch > LOWEST_VOICED
        pitch = pitch.clamp(min=LOWEST_VOICED)
        sums = torch.cat([self._turns, pitch.double()]).cumsum(0)
        self._turns = sums[-1:].clone()
        phase = (sums[1:] / SAMPLE_RATE % 1 * (2 * math.pi)).float()
        order = (HIGHEST_HARMONIC / pitch).floor() + 0.5
        sine = 2 * (phase * 0.5).sin()
        at_peak = sine.abs() <= SMALLEST_SINE
        value = torch.where(at_peak, order, (order * phase).sin() / torch.where(at_peak, 1.0, sine))
        return torch.where(voiced, value - 0.5, 0.0)


class PulseSpectra:
    """Short-time spectra of samples that arrive in pieces, reflected at both ends; frame k is centred on sample k ·
    hop, and there is one frame per complete hop."""

    def __init__(self) -> None:
        window = torch.hann_window(WINDOW)
        self._window = window / (WINDOW / 4)
        """Scales a cosine of amplitude one to a peak of one."""
        self._held = torch.zeros(0)
        self._begun = False

    def push(self, samples: Tensor, last: bool = False) -> Tensor:
        """Next samples (n,), with ``last`` the last ones, to the spectra that are now final, (frames, bins)
        complex64."""
        self._held = torch.cat([self._held, samples])
        length, frames = len(self._held), 0
        if not self._begun and length > _HALF:
            self._held, self._begun = torch.cat([self._held[1 : _HALF + 1].flip(0), self._held]), True
        if self._begun:
            if last:
                self._held = torch.cat([self._held, self._held[-_HALF - 1 : -1].flip(0)])
            frames = max((len(self._held) - WINDOW) // HOP + (not last), 0)
        elif last and length >= HOP:
            # Half a window on either side, mirrored repeatedly if necessary.
            frames, period = length // HOP, 2 * (length - 1)
            places = torch.arange(-_HALF, length + _HALF) % period
            self._held = self._held[torch.minimum(places, period - places)]
        if not frames:
            return torch.zeros(0, BINS, dtype=torch.complex64)
        windows = self._held.unfold(0, WINDOW, HOP)[:frames] * self._window
        self._held = self._held[frames * HOP :]
        return torch.fft.rfft(windows)


class LatentSpace(nn.Module):
    mean: Tensor
    directions: Tensor
    deviations: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(HIDDEN))
        self.register_buffer("directions", torch.zeros(COMPONENTS, HIDDEN))
        """Orthonormal rows."""
        self.register_buffer("deviations", torch.ones(COMPONENTS))

    def latents(self, hidden: Tensor, pitch: Tensor) -> Tensor:
        """Hidden frames (n, 256) and their pitch (n,) in hertz, 0 if unvoiced, to latent frames (n, 34)."""
        components = (hidden - self.mean) @ self.directions.T / self.deviations
        voiced, log_pitch = pitch > LOWEST_VOICED, torch.zeros_like(pitch)
        if voiced.any():
            known = torch.nonzero(voiced)[:, 0].numpy()
            logarithm = (np.log(pitch.numpy()[known]) - PITCH_MEAN) / PITCH_SCALE
            log_pitch = torch.from_numpy(np.interp(np.arange(len(pitch)), known, logarithm).astype(np.float32))
        return torch.cat([components, log_pitch[:, None], torch.where(voiced, 1.0, -1.0)[:, None]], dim=1)

    def hidden(self, latents: Tensor) -> Tensor:
        """Latent frames (n, ≥ 32) to hidden frames (n, 256)."""
        return latents[:, :COMPONENTS] * self.deviations @ self.directions + self.mean

    @staticmethod
    def pitch(latents: Tensor) -> Tensor:
        """Pitch (n,) in hertz of latent frames (n, ≥ 34), 0 if unvoiced."""
        pitch = (latents[:, PITCH] * PITCH_SCALE + PITCH_MEAN).exp()
        return torch.where(latents[:, VOICING] > 0, pitch, 0.0)


WEIGHT_FILE = "model.safetensors"
SMALLEST_ENVELOPE = 1e-11


class NaturalDecoder(nn.Module):
    """The decoder, always in float32: half precision is audible in the phases."""

    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.space = LatentSpace()
        self.network = SpectralNetwork()
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)

    @torch.inference_mode()
    def decode(
        self, frames: Tensor, pitch_scale: float = 1.0, formant_scale: float = 1.0, noise: SeededNoise | None = None
    ) -> Tensor:
        """Latent or voice frames, (n, 34) or (n, 36), to samples (n · 300,) float32 at 24 kHz; frame k is centred on
        sample k · 300. ``pitch_scale`` and ``formant_scale`` are factors on pitch and on all frequencies of the
        spectra; voice frames have their own formant scale and level. ``noise`` defaults to that of seed 0."""
        scale, level = of_voice(frames, formant_scale)
        hidden, pitch = self.space.hidden(frames), self.space.pitch(frames) * pitch_scale
        return self.decode_hidden(hidden, pitch, scale, level, noise)

    @torch.inference_mode()
    def decode_hidden(
        self,
        hidden: Tensor,
        pitch: Tensor,
        formant_scale: Tensor | None = None,
        level: Tensor | None = None,
        noise: SeededNoise | None = None,
    ) -> Tensor:
        """Hidden frames (n, 256) and their pitch (n,) in hertz, 0 if unvoiced, to samples (n · 300,). ``formant_scale``
        and ``level`` (a natural logarithm) are (n,)."""
        if not len(hidden):
            return hidden.new_zeros(0)
        pulses = PulseSpectra().push(PulseTrain().push(pitch, last=True), last=True).to(hidden.device)
        spectra = self.network(hidden.T[None]).shaped(formant_scale, level)
        return self.audio(spectra.spectrum(pulses, (noise or SeededNoise()).draw(len(hidden)).to(hidden.device)))

    def audio(self, spectrum: Tensor) -> Tensor:
        """Overlap-add of windowed frames, (n, bins) complex to (n · 300,), divided by their windows' energy."""
        count = len(spectrum)
        frames = torch.fft.irfft(spectrum, WINDOW) * self.window
        size = (1, (count + WINDOW // HOP - 1) * HOP)
        energy = (self.window**2)[:, None].expand(-1, count)
        added, envelope = (
            nn.functional.fold(one[None], size, (1, WINDOW), stride=(1, HOP)).flatten() for one in (frames.T, energy)
        )
        half = WINDOW // 2
        return (added / envelope.clamp(min=SMALLEST_ENVELOPE))[half : half + count * HOP]

    @classmethod
    def load(cls, folder: Path | None = None, device: torch.device | str = "cpu") -> NaturalDecoder:
        """Load a folder, by default the bundled one. Raises :class:`CheckpointError` that names the faulty file."""
        path = (folder or resource("models", "natural-decoder")) / WEIGHT_FILE
        return packed(loaded_strictly(cls, dequantised(read_weights(path)), str(path)).to(device))


def of_voice(frames: Tensor, formant_scale: float) -> tuple[Tensor | None, Tensor | None]:
    """Formant scale and level of each frame (n,); ``None`` for those without effect."""
    if frames.shape[1] == LATENT:
        return None if formant_scale == 1 else frames.new_full((len(frames),), formant_scale), None
    own = frames[:, FORMANT] * FORMANT_SCALE + FORMANT_MEAN
    return own * formant_scale, frames[:, LEVEL] * LEVEL_SCALE + LEVEL_MEAN
