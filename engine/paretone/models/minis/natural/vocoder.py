"""Mel to natural speech: what :mod:`.mel_reader` reads off it, decoded. It takes the place of a Vocos."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from paretone.models.minis.frames import HOP as MEL_HOP
from paretone.models.minis.natural.decoder import NaturalDecoder
from paretone.models.minis.natural.mel_reader import CONFIG_FILE, MelReader
from paretone.models.minis.natural.streaming import StreamedMelReader, StreamedNatural


class LatentVocoder(nn.Module):
    """Mel reader and decoder. Always float32."""

    def __init__(self, reader: MelReader, decoder: NaturalDecoder) -> None:
        super().__init__()
        self.reader, self.decoder = reader, decoder

    @torch.inference_mode()
    def decode(self, mel: Tensor) -> Tensor:
        """Audio of a natural-log mel spectrogram: (B, bands, frames) to (B, (frames - 1) · 256) float32, as that of
        :meth:`paretone.models.networks.vocos.Vocos.decode`."""
        count = (mel.shape[2] - 1) * MEL_HOP
        return torch.stack([self.decoder.decode(frames)[:count] for frames in self.reader(mel.float())])

    @classmethod
    def is_at(cls, folder: Path) -> bool:
        """Whether ``folder`` describes a mel reader."""
        return (folder / CONFIG_FILE).is_file()

    @classmethod
    def load(cls, folder: Path, device: torch.device | str = "cpu") -> LatentVocoder:
        """Load the exported mel reader in ``folder``, and the bundled decoder. Raises :class:`CheckpointError`."""
        return cls(MelReader.load(folder, device), NaturalDecoder.load(device=device))


class StreamedVocoder:
    """Mel frames in pieces to audio; all pieces together are what :meth:`LatentVocoder.decode` gives."""

    def __init__(self, vocoder: LatentVocoder) -> None:
        self._reader, self._decoder = StreamedMelReader(vocoder.reader), StreamedNatural(vocoder.decoder)
        self._frames = self._given = 0

    def push(self, mel: Tensor) -> Tensor:
        """(1, bands, n) natural-log mel to the samples (m,) that are final now."""
        self._frames += mel.shape[2]
        return self._cut(self._decoder.push(self._reader.push(mel.float())))

    def finish(self) -> Tensor:
        """The rest, (m,)."""
        last = self._decoder.push(self._reader.finish())
        return self._cut(torch.cat([last, self._decoder.finish()]))

    def _cut(self, samples: Tensor) -> Tensor:
        """Without what lies after the middle of the last mel frame."""
        samples = samples[: max((self._frames - 1) * MEL_HOP - self._given, 0)]
        self._given += len(samples)
        return samples
