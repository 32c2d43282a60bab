"""Recipe ``voice-vocoder``, the vocoder of natural speech: from official mels to the input of the teacher's decoder.

A mel has no phases and no fine structure, and a small network that must invent them buzzes. This one regresses latent
frames, formant scale and level, which a mel determines; a fixed decoder does the rest. Errors in the latents are also
weighted by their effect: the decoder's log magnitudes are compared. Noise on the mels, of varying strength, makes the
network robust to the output of a flow model in few steps; a random gain teaches it the level. Half of the excerpts lack
high frequencies, as recordings do: without them, the network takes a missing top of the spectrum for a longer vocal
tract.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from paretone.audio.mel import htk_filterbank
from paretone.files import write_atomically
from paretone.models.files.checkpoints import fingerprint
from paretone.models.minis.natural_decoder import (
    COMPONENTS,
    FORMANT,
    FORMANT_SCALE,
    LEVEL,
    LEVEL_SCALE,
    PITCH,
    VOICING,
)
from paretone.models.minis.natural_vocoder import (
    CONFIG_FILE,
    WEIGHT_FILE,
    MelReader,
    MelReaderConfig,
    at_latent_frames,
    latent_frames,
    mel_frame_at,
)
from paretone.observer import may_stop
from paretone.training.batches import Corpus
from paretone.training.learner import LayerMatrices, LearningOptions
from paretone.training.natural_corpus import NaturalClip, voice_frames
from paretone.training.recipes.bundled_recipe import (
    CENTS,
    NaturalExcerpts,
    begin_blocks,
    frame_error,
    spectral_error,
)

SAMPLE_RATE, WINDOW = 24_000, 1_024
FLOOR = math.log(1e-5)
"""Lower limit of mel values."""


def centres(bands: int) -> Tensor:
    """(bands,) hertz at the middle of each band."""
    return htk_filterbank(SAMPLE_RATE, WINDOW, bands).argmax(0) * (SAMPLE_RATE / WINDOW)


def band_limited(mel: Tensor, edge: Tensor, slope: Tensor, depth: Tensor) -> Tensor:
    """Natural-log mel (B, bands, n) of the sounds after low-passes that begin at ``edge`` (B,) hertz and attenuate by
    ``depth`` (B,) nepers from ``slope`` (B,) hertz above it."""
    beyond = (centres(mel.shape[1]).to(mel.device) - edge[:, None]) / slope[:, None]
    return torch.maximum(mel - (depth[:, None] * beyond.clamp(0, 1))[:, :, None], mel.clamp(max=FLOOR))


LAYER_MATRICES = LayerMatrices("backbone.convnext.")
DECIBELS = LEVEL_SCALE * 20 / math.log(10)
"""Decibels per unit of a voice frame's level."""
VALIDATION_NOISE = 0.3
"""Standard deviation of the noise on the normalised mel in the second validation."""


@dataclass(frozen=True)
class VocoderOptions(LearningOptions):
    frames: int = 128
    """Latent frames per training excerpt."""
    batch: int = 16
    largest_noise: float = 0.3
    """Upper limit of the normalised mel's noise, a standard deviation drawn per excerpt."""
    largest_gain: float = 0.7
    """Limit (±) of the drawn gain's natural logarithm."""
    band_limited: float = 0.5
    """Share of low-passed excerpts."""
    lowest_edge: float = 3_400.0
    highest_edge: float = 11_700.0
    """Range of the low-pass edge in hertz."""
    spectrum_weight: float = 0.5
    """Weight of the mean absolute error in log magnitudes, relative to that in voice frames."""
    pitch_weight: float = 4.0
    """Weight of the pitch in voiced frames; all other numbers of a voice frame have 1."""
    average_decay: float = 0.998


class NaturalVocoder(NaturalExcerpts[VocoderOptions, MelReader]):
    """Trains a mel reader; see :class:`paretone.training.session.Recipe`."""

    name = "voice-vocoder"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: VocoderOptions = VocoderOptions(),
        architecture: MelReaderConfig = MelReaderConfig(),
        initial: Path | None = None,
    ) -> None:
        """``initial``: folder of an exported mel reader to start from instead of random weights. Raises
        :class:`CheckpointError`."""
        torch.manual_seed(options.seed)
        self._initial = fingerprint(initial / WEIGHT_FILE) if initial else "random"
        if initial:
            model = MelReader.load(initial).train().requires_grad_(True)
        else:
            model = MelReader(architecture)
            mels = torch.from_numpy(np.concatenate([clip.mel for clip in corpus.training[::7]]).astype(np.float32))
            model.mel_mean.copy_(mels.mean(0))
            model.mel_scale.copy_(mels.std(0))
            begin_blocks(model)
        clips = [clip for clip in corpus.training if len(clip.latents) > options.frames + 1]
        super().__init__(corpus, clips, model, LAYER_MATRICES, device, options)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "initial_weights": self._initial}

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor]]:
        mel, wanted = self._batch()
        with self.options.autocast(self.device):
            made = self.model.out(self.model.backbone(mel)).float()
            spectrum = spectral_error(self._decoder, made, wanted)
        voice = frame_error(made, wanted, self.options.pitch_weight)
        loss = voice + self.options.spectrum_weight * spectrum
        return loss, {"voice": voice.detach(), "spectrum": spectrum.detach()}

    def _batch(self) -> tuple[Tensor, Tensor]:
        """Normalised mels (B, bands, n) as network input, and the target voice frames (B, n, 36)."""
        excerpts = [self._excerpt(self._draw.choice(self.clips)) for _ in range(self.options.batch)]
        mel = torch.stack([one for one, _ in excerpts])
        wanted = torch.stack([one for _, one in excerpts])
        gain, strength = (torch.rand((2, len(mel), 1, 1), generator=self.generator)).unbind()
        gain = (2 * gain - 1) * self.options.largest_gain
        wanted[:, :, LEVEL] = gain[:, :, 0] / LEVEL_SCALE
        mel = self.model.normalised(self._limited(mel + gain).to(self.device).mT).mT
        noise = torch.randn(mel.shape, generator=self.generator) * strength * self.options.largest_noise
        return mel + noise.to(self.device), wanted.to(self.device)

    def _limited(self, mel: Tensor) -> Tensor:
        """Low-pass some of the mels (B, bands, n), with slopes of 100 to 1,000 Hz and depths of 35 to 113 dB."""
        options = self.options
        chosen, edge, slope, depth = torch.rand((4, len(mel)), generator=self.generator).unbind()
        edge = options.lowest_edge * (options.highest_edge / options.lowest_edge) ** edge
        limited = band_limited(mel, edge, slope=100 * 10**slope, depth=4 + 9 * depth)
        return torch.where((chosen < options.band_limited)[:, None, None], limited, mel)

    def _excerpt(self, clip: NaturalClip) -> tuple[Tensor, Tensor]:
        """Random excerpt of ``clip``: its mel at the latent frames (bands, n), and its voice frames (n, 36)."""
        count = self.options.frames
        first = self._draw.randrange(min(len(clip.latents), latent_frames(clip.frames)) - count)
        return mel_at(clip, first, count), voice_frames(clip)[first : first + count]

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """On held-out voices: mean absolute errors of the components, with and without noise on the mel, of pitch in
        cents, voicing (share of frames), formant scale, and level in decibels."""
        generator = torch.Generator().manual_seed(7)
        reader = self.average.module
        sums = dict.fromkeys(("components", "components_noised", "cents", "voicing", "formant", "level"), 0.0)
        for clip in self.held_out:
            may_stop()
            count = min(len(clip.latents), latent_frames(clip.frames))
            wanted = voice_frames(clip)[:count].to(self.device)
            mel = mel_at(clip, 0, count)[None].to(self.device)
            made = reader.read(mel)[0]
            noise = torch.randn(mel.shape, generator=generator).to(self.device) * reader.mel_scale[:, None]
            noised = reader.read(mel + VALIDATION_NOISE * noise)[0]
            error = (made - wanted).abs()
            voiced = wanted[:, VOICING] > 0
            sums["components"] += float(error[:, :COMPONENTS].mean())
            sums["components_noised"] += float((noised - wanted)[:, :COMPONENTS].abs().mean())
            sums["cents"] += float(error[voiced, PITCH].sum() / voiced.sum().clamp(min=1)) * CENTS
            sums["voicing"] += float(((made[:, VOICING] > 0) != voiced).float().mean())
            sums["formant"] += float(error[:, FORMANT].mean()) * FORMANT_SCALE
            sums["level"] += float(error[:, LEVEL].mean()) * DECIBELS
        return {name: total / len(self.held_out) for name, total in sums.items()}

    def export(self, folder: Path) -> None:
        """Write the float16 file for :meth:`paretone.models.minis.natural_vocoder.MelReader.load`."""
        folder.mkdir(parents=True, exist_ok=True)
        reader = self.average.module
        content = json.dumps({"mel_reader": asdict(reader.config)}, indent=1) + "\n"
        write_atomically(folder / CONFIG_FILE, content.encode())
        weights = {name: value.detach().cpu().half().contiguous() for name, value in reader.state_dict().items()}
        write_atomically(folder / WEIGHT_FILE, save(weights, {"format": "pt", "steps": str(self.steps)}))


def mel_at(clip: NaturalClip, first: int, count: int) -> Tensor:
    """The log mel of ``clip`` at ``count`` latent frames from ``first``, (bands, count) float32."""
    begin, end = mel_frame_at(first), mel_frame_at(first + count) + 2
    mel = torch.from_numpy(clip.mel[begin:end].astype(np.float32)).T
    return at_latent_frames(mel[None], first, count, begin)[0]
