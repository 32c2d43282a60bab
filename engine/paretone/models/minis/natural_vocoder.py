"""Mel to natural speech, in place of a Vocos: ConvNeXt blocks read voice frames off the mel of the official F5-TTS
layout, and the decoder turns them into audio, at once or in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from paretone.audio.mel import MelFrontEnd
from paretone.models.families.passages import Decoded
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.kernels.products import packed
from paretone.models.minis.natural_decoder import (
    BINS,
    HIDDEN,
    HOP,
    LEVEL,
    MEL_HOP,
    SAMPLE_RATE,
    VOICE,
    NaturalDecoder,
    PulseSpectra,
    PulseTrain,
    SeededNoise,
    of_voice,
)
from paretone.models.networks.quantised_mel import MelStatistics
from paretone.models.networks.vocos import StreamedBlocks, StreamedOverlapAdd, VocosBackbone, VocosConfig

# Mel frames, 93.75 per second, to the decoder's latent frames, 80 per second. Frame k of either kind is centred on
# sample k · hop, so latent frame k lies at mel frame k · 75 / 64 and is interpolated between that frame's neighbours.


def latent_frames(mel_frames: int) -> int:
    """Number of latent frames that reach the centre of the last of ``mel_frames``."""
    return -(-(mel_frames - 1) * MEL_HOP // HOP) + 1


def at_latent_frames(mel: Tensor, first: int, count: int, begin: int = 0) -> Tensor:
    """Interpolate ``mel`` (B, bands, frames), which starts at frame ``begin``, at the latent frames from ``first``: (B,
    bands, count). The last frame is held."""
    places = torch.arange(first, first + count, device=mel.device) * HOP
    left = places // MEL_HOP
    weight = (places - left * MEL_HOP).to(mel.dtype) / MEL_HOP
    last = mel.shape[2] - 1
    left = left - begin
    early, late = mel[:, :, left.clamp(max=last)], mel[:, :, (left + 1).clamp(max=last)]
    return early + (late - early) * weight


CONFIG_FILE, WEIGHT_FILE = "config.json", "model.safetensors"


@dataclass(frozen=True)
class MelReaderConfig:
    bands: int = 100
    width: int = 256
    inner_width: int = 768
    layers: int = 5


class MelReader(MelStatistics):
    def __init__(self, config: MelReaderConfig = MelReaderConfig()) -> None:
        super().__init__(config.bands)
        self.config = config
        self.backbone = VocosBackbone(VocosConfig(config.bands, config.width, config.inner_width, config.layers))
        self.out = nn.Linear(config.width, VOICE)

    def forward(self, mel: Tensor) -> Tensor:
        """Log mel (B, bands, frames) to voice frames (B, latent frames, 36)."""
        return self.read(at_latent_frames(mel, 0, latent_frames(mel.shape[2])))

    def read(self, mel: Tensor) -> Tensor:
        """Log mel at the latent frames (B, bands, n) to voice frames (B, n, 36)."""
        return self.out(self.backbone(self.normalised(mel.mT).mT))

    @classmethod
    def load(cls, folder: Path, device: torch.device | str = "cpu") -> MelReader:
        """Load an exported folder, in float32. Raises :class:`CheckpointError` that names the faulty file."""
        sizes = ConfigFile.read(folder / CONFIG_FILE).part("mel_reader").sizes(MelReaderConfig)
        path = folder / WEIGHT_FILE
        return packed(loaded_strictly(lambda: cls(sizes), read_float_weights(path), str(path)).to(device))


class StreamedNatural:
    """Voice frames to audio in pieces, equal to :meth:`NaturalDecoder.decode`. Audio has a delay of fourteen
    frames (0.18 s): the blocks look ahead by twelve, the transforms by two."""

    def __init__(self, decoder: NaturalDecoder) -> None:
        self._decoder = decoder
        self._noise = SeededNoise()
        self._blocks = StreamedBlocks(decoder.network.blocks)
        self._train, self._transform = PulseTrain(), PulseSpectra()
        self._audio = StreamedOverlapAdd(decoder.window, HOP, tail=1)
        self._hidden, self._frames = (decoder.window.new_zeros(0, one) for one in (HIDDEN, VOICE))
        """Output of the blocks for frames whose pulses are not yet known, and frames without audio."""
        self._pulses = torch.zeros(0, BINS, dtype=torch.complex64)
        """Spectra of pulses for frames that the blocks have not yet returned."""

    @torch.inference_mode()
    def push(self, frames: Tensor, last: bool = False) -> Tensor:
        """Next voice frames (n, 36), with ``last`` the last ones, possibly none, to the samples (m,) that are now
        final."""
        space, network = self._decoder.space, self._decoder.network
        samples = self._train.push(space.pitch(frames), last)
        self._pulses = torch.cat([self._pulses, self._transform.push(samples, last)])
        self._hidden = torch.cat([self._hidden, self._blocks.push(space.hidden(frames), last)])
        self._frames = torch.cat([self._frames, frames])
        count = min(len(self._hidden), len(self._pulses))
        if not count:
            return frames.new_zeros(0)
        hidden, self._hidden = self._hidden[:count], self._hidden[count:]
        pulses, self._pulses = self._pulses[:count], self._pulses[count:]
        frames, self._frames = self._frames[:count], self._frames[count:]
        spectra = network.out(hidden).shaped(*of_voice(frames, 1.0))
        noise = self._noise.draw(count).to(hidden.device)
        return self._audio.push(spectra.spectrum(pulses.to(hidden.device), noise), last)


class LatentVocoder(nn.Module):
    """Mel reader and decoder, always in float32."""

    def __init__(self, reader: MelReader, decoder: NaturalDecoder) -> None:
        super().__init__()
        self.reader, self.decoder = reader, decoder

    @torch.inference_mode()
    def decode(self, mel: Tensor) -> Tensor:
        """Natural-log mel (B, bands, frames) to audio (B, (frames - 1) · 256) float32, like
        :meth:`paretone.models.networks.vocos.Vocos.decode`."""
        count = (mel.shape[2] - 1) * MEL_HOP
        return torch.stack([self.decoder.decode(frames)[:count] for frames in self.reader(mel.float())])

    @classmethod
    def is_at(cls, folder: Path) -> bool:
        return (folder / CONFIG_FILE).is_file()

    @classmethod
    def load(cls, folder: Path, device: torch.device | str = "cpu") -> LatentVocoder:
        """Load the exported mel reader in ``folder``, and the bundled decoder. Raises :class:`CheckpointError`."""
        return cls(MelReader.load(folder, device), NaturalDecoder.load(device=device))


GROUP = 2
"""Latent frames per group; the next two are numbers and samples per group."""
GROUPED, GROUP_HOP = GROUP * LEVEL, GROUP * HOP
MARGIN = 8
"""Groups before the speech that are decoded with it, because its first frames depend on them."""


def grouped(frames: Tensor) -> Tensor:
    """Voice frames (…, n, 35 or 36) to groups (…, n // 2, 70); an incomplete group is dropped."""
    groups = frames.shape[-2] // GROUP
    return frames[..., : groups * GROUP, :LEVEL].unflatten(-2, (groups, GROUP)).flatten(-2)


def ungrouped(groups: Tensor) -> Tensor:
    """Groups (…, n, 70) to voice frames (…, 2 · n, 36) at the mean level."""
    frames = groups.unflatten(-1, (GROUP, LEVEL)).flatten(-3, -2)
    return torch.cat([frames, frames.new_zeros(*frames.shape[:-1], VOICE - LEVEL)], dim=-1)


class GroupedCodec:
    """Recordings to groups and back; as a decoder see :class:`paretone.models.megatts3.wavvae.LatentDecoder`."""

    sample_rate = SAMPLE_RATE
    samples_per_latent = GROUP_HOP

    def __init__(self, vocoder: LatentVocoder) -> None:
        self._vocoder, self._mel = vocoder, MelFrontEnd()

    @torch.inference_mode()
    def encode(self, mel: Tensor) -> Tensor:
        """Log mel (B, frames, bands) at the level of a prompt to groups (B, n, 70)."""
        return grouped(self._vocoder.reader(mel.mT.float().to(self._vocoder.reader.mel_mean.device)))

    def __call__(self, latents: Tensor, prompt_frames: int) -> Decoded:
        """Speech of ``latents`` (1, n, 70) after the first ``prompt_frames``."""
        first = max(prompt_frames - MARGIN, 0)
        whole = self._vocoder.decoder.decode(ungrouped(latents[0, first:].float()))
        samples = whole[(prompt_frames - first) * GROUP_HOP :].cpu()
        return Decoded(samples.numpy(), self._mel(samples)[0].numpy())
