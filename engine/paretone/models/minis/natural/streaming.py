"""The decoder of natural speech in pieces, exactly: what it gives of all pieces together is what it gives of the whole.

Sound comes fourteen frames (0.18 s) after the latents that it belongs to: twelve that the blocks look ahead, and two
that the transforms do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paretone.models.minis.natural.decoder import NaturalDecoder, of_voice
from paretone.models.minis.natural.excitation import Noise, PulseSpectra, PulseTrain, SeededNoise
from paretone.models.minis.natural.frame_rates import StreamedFrames
from paretone.models.minis.natural.layout import HIDDEN, HOP
from paretone.models.minis.natural.mel_reader import MelReader
from paretone.models.networks.streaming import StreamedBackbone, StreamedBlocks, StreamedOverlapAdd


class StreamedNatural:
    """Latent or voice frames to audio; see :meth:`NaturalDecoder.decode`."""

    def __init__(
        self,
        decoder: NaturalDecoder,
        pitch_scale: float = 1.0,
        formant_scale: float = 1.0,
        noise: Noise | None = None,
    ) -> None:
        self._decoder = decoder
        self._pitch_scale, self._formant_scale = pitch_scale, formant_scale
        self._noise = noise or SeededNoise()
        self._blocks = StreamedBlocks(decoder.network.blocks)
        self._train, self._transform = PulseTrain(), PulseSpectra()
        self._audio = StreamedOverlapAdd(decoder.window, HOP, tail=1)
        device = decoder.window.device
        self._hidden = torch.zeros(1, HIDDEN, 0, device=device)
        """What the blocks gave of frames whose pulses are not known yet."""
        self._pulses: Tensor | None = None
        """Spectra of the pulses of frames that the blocks have not given yet."""
        self._frames: Tensor | None = None
        """Frames that neither sound yet."""

    @torch.inference_mode()
    def push(self, frames: Tensor) -> Tensor:
        """(n, 34) or (n, 36) to the samples (m,) that are final now."""
        self._frames = frames if self._frames is None else torch.cat([self._frames, frames])
        hidden = self._blocks.push(self._decoder.space.hidden(frames).T[None])
        pitch = self._decoder.space.pitch(frames) * self._pitch_scale
        return self._heard(hidden, self._transform.push(self._train.push(pitch)))

    @torch.inference_mode()
    def finish(self) -> Tensor:
        """The rest, (m,)."""
        if self._frames is None:
            return self._hidden.new_zeros(0)
        pulses = torch.cat([self._transform.push(self._train.finish()), self._transform.finish()])
        return torch.cat([self._heard(self._blocks.finish(), pulses), self._audio.finish()])

    def _heard(self, hidden: Tensor, pulses: Tensor) -> Tensor:
        assert self._frames is not None
        self._hidden = torch.cat([self._hidden, hidden], dim=2)
        self._pulses = pulses if self._pulses is None else torch.cat([self._pulses, pulses])
        count = min(self._hidden.shape[2], len(self._pulses))
        hidden, self._hidden = self._hidden[:, :, :count], self._hidden[:, :, count:]
        pulses, self._pulses = self._pulses[:count], self._pulses[count:]
        frames, self._frames = self._frames[:count], self._frames[count:]
        if not count:
            return hidden.new_zeros(0)
        spectra = self._decoder.network.out(hidden).shaped(*of_voice(frames, self._formant_scale))
        noise = self._noise.draw(count).to(hidden.device)
        return self._audio.push(spectra.spectrum(pulses.to(hidden.device), noise)[None])


class StreamedMelReader:
    """Log mel to voice frames; see :class:`MelReader`."""

    def __init__(self, reader: MelReader) -> None:
        self._reader = reader
        self._mel = StreamedFrames(reader.config.bands)
        self._hidden = StreamedBackbone(reader.backbone)

    @torch.inference_mode()
    def push(self, mel: Tensor) -> Tensor:
        """(1, bands, n) natural-log mel to the voice frames (m, 36) that are final now."""
        return self._read(self._mel.push(mel))

    @torch.inference_mode()
    def finish(self) -> Tensor:
        """The rest, (m, 36)."""
        return torch.cat([self._read(self._mel.finish()), self._reader.out(self._hidden.finish())[0]])

    def _read(self, mel: Tensor) -> Tensor:
        return self._reader.out(self._hidden.push(self._reader.normalised(mel.mT).mT))[0]
