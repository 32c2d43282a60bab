"""The decoder of natural speech: latent frames, or the hidden frames that they encode, to audio."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from paretone.models.files.checkpoints import loaded_strictly, read_weights
from paretone.models.minis.natural.excitation import Noise, PulseSpectra, PulseTrain, SeededNoise
from paretone.models.minis.natural.latent_space import LatentSpace
from paretone.models.minis.natural.layout import (
    FORMANT,
    FORMANT_MEAN,
    FORMANT_SCALE,
    HOP,
    LATENT,
    LEVEL,
    LEVEL_MEAN,
    LEVEL_SCALE,
    WINDOW,
)
from paretone.models.minis.natural.spectra import SpectralNetwork, dequantised
from paretone.paths import resource

WEIGHT_FILE = "model.safetensors"
SMALLEST_ENVELOPE = 1e-11


class NaturalDecoder(nn.Module):
    """The decoder. Always float32: half precision is audible in the phases."""

    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.space = LatentSpace()
        self.network = SpectralNetwork()
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)

    @torch.inference_mode()
    def decode(
        self,
        frames: Tensor,
        pitch_scale: float = 1.0,
        formant_scale: float = 1.0,
        noise: Noise | None = None,
    ) -> Tensor:
        """Latent or voice frames, (n, 34) or (n, 36), to samples (n · 300,) float32 at 24 kHz; frame k is centred on
        sample k · 300.

        ``pitch_scale`` and ``formant_scale`` are factors on pitch and on all frequencies of the spectra; voice frames
        have their own formant scale and level. ``noise`` is that of seed 0 by default.
        """
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
        noise: Noise | None = None,
    ) -> Tensor:
        """Hidden frames (n, 256) and their pitch (n,) in hertz, 0 without voice, to samples (n · 300,).

        ``formant_scale`` and ``level`` (a natural logarithm) are (n,).
        """
        if not len(hidden):
            return hidden.new_zeros(0)
        train, transform = PulseTrain(), PulseSpectra()
        samples = torch.cat([train.push(pitch), train.finish()])
        pulses = torch.cat([transform.push(samples), transform.finish()]).to(hidden.device)
        spectra = self.network(hidden.T[None]).shaped(formant_scale, level)
        drawn = (noise or SeededNoise()).draw(len(hidden)).to(hidden.device)
        return self._audio(spectra.spectrum(pulses, drawn))

    def _audio(self, spectrum: Tensor) -> Tensor:
        """(bins, n) complex to (n · 300,): the windowed frames added up, over their windows' energy."""
        count = spectrum.shape[1]
        frames = torch.fft.irfft(spectrum.T, WINDOW) * self.window
        size = (1, (count + WINDOW // HOP - 1) * HOP)
        energy = (self.window**2)[:, None].expand(-1, count)
        added, envelope = (
            nn.functional.fold(one[None], size, (1, WINDOW), stride=(1, HOP)).flatten() for one in (frames.T, energy)
        )
        half = WINDOW // 2
        return (added / envelope.clamp(min=SMALLEST_ENVELOPE))[half : half + count * HOP]

    @classmethod
    def load(cls, folder: Path | None = None, device: torch.device | str = "cpu") -> NaturalDecoder:
        """Load a folder, by default the bundled one. Raises :class:`CheckpointError` that names the file at fault."""
        path = (folder or resource("models", "natural-decoder")) / WEIGHT_FILE
        decoder = loaded_strictly(cls, dequantised(read_weights(path)), str(path))
        return decoder.eval().requires_grad_(False).to(device)


def of_voice(frames: Tensor, formant_scale: float) -> tuple[Tensor | None, Tensor | None]:
    """Formant scale and level of every frame (n,); ``None`` where they change nothing."""
    if frames.shape[1] == LATENT:
        return None if formant_scale == 1 else frames.new_full((len(frames),), formant_scale), None
    own = frames[:, FORMANT] * FORMANT_SCALE + FORMANT_MEAN
    return own * formant_scale, frames[:, LEVEL] * LEVEL_SCALE + LEVEL_MEAN
