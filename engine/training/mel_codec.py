"""The recipe of the codec in the bundled MegaTTS 3, ``mel-codec``: mel frames to latents that a flow can predict.

The decoder learns from latents with noise on them, of a strength that changes from item to item. What it has learnt to
bear from noise it bears from a flow model's errors, and latents that must survive noise lie smoothly: neighbours mean
similar sounds. Normalising every latent to variance one (batch statistics in training) keeps the encoder from
outgrowing the noise. A phone classifier on the latents keeps what words need, where a distance between spectra alone
would not.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from engine.files import write_atomically
from engine.front_end.durations import labels
from engine.front_end.phones import CONSONANTS, PAUSE, VOWELS, PhoneVocabulary
from engine.models.megatts3.mel_codec import CONFIG_FILE, WEIGHT_FILE, MelCodec, MelCodecConfig
from engine.training.corpora import HOP, SAMPLE_RATE, Clip, Corpus
from engine.training.schedule import AveragedModel, learning_rate_scale
from engine.training.session import require_finite

VOCABULARY = PhoneVocabulary((PAUSE, *sorted(VOWELS | CONSONANTS)))
SMALLEST_SCALE = 1.0
"""Bands above 8 kHz are all but constant in this corpus; their deviation must not become a tiny divisor."""
LIFTED_FLOOR = (-7.5, -5.5)
"""Log mel to which the quantisation noise of a 16-bit recording lifts silent bands, give or take."""


@dataclass(frozen=True)
class MelCodecOptions:
    """What a run of the recipe can change."""

    frames: int = 96
    """Mel frames of one training excerpt, a multiple of the codec's stride."""
    batch: int = 16
    learning_rate: float = 2e-3
    warm_up: int = 100
    hold: float = 0.3
    largest_noise: float = 0.4
    """Standard deviation of the noise on the latents, drawn for every item between zero and this."""
    change_weight: float = 0.5
    """Weight of the error in the mel's change from frame to frame."""
    phone_weight: float = 0.1
    lifted_share: float = 0.4
    """Share of excerpts that the encoder sees with a lifted floor and the decoder is to give without."""
    average_decay: float = 0.998
    half_precision: bool = False
    seed: int = 1


class MelCodecRecipe:
    """Trains a mel codec; see :class:`engine.training.session.Recipe`."""

    name = "mel-codec"

    def __init__(
        self,
        corpus: Corpus,
        device: torch.device,
        options: MelCodecOptions = MelCodecOptions(),
        architecture: MelCodecConfig = MelCodecConfig(),
    ) -> None:
        self.device, self.options = device, options
        self._clips = [clip for clip in corpus.training if clip.frames > options.frames]
        self._held_out = corpus.held_out[::3]
        self._seconds = corpus.seconds
        torch.manual_seed(options.seed)
        self.model = MelCodec(architecture)
        initialise(self.model, corpus.training)
        self.model.to(device)
        # Four phones a latent frame, by a perceptron: a linear classifier would bend the latents to its planes.
        self.classifier = nn.Sequential(
            nn.Conv1d(architecture.latent, 192, 1),
            nn.GELU(),
            nn.Conv1d(192, architecture.stride * len(VOCABULARY.phones), 1),
        ).to(device)
        self.average = AveragedModel(self.model, options.average_decay)
        parameters = [*self.model.parameters(), *self.classifier.parameters()]
        self._optimiser = torch.optim.AdamW(
            parameters, lr=options.learning_rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True
        )
        self._draw = random.Random(options.seed)
        self._generator = torch.Generator().manual_seed(options.seed)

    def describe(self) -> dict[str, Any]:
        return {
            "corpus": f"flite, {len(self._clips)} clips, {self._seconds / 3600:.2f} h",
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "initial_weights": "random",
            "options": asdict(self.options),
        }

    def _batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """What the encoder sees and the decoder is to give, both (B, frames, bands), and phones (B, frames)."""
        seen, wanted, phones = [], [], []
        for _ in range(self.options.batch):
            clip = self._draw.choice(self._clips)
            start = self._draw.randrange(clip.frames - self.options.frames)
            stretch = slice(start, start + self.options.frames)
            mel = torch.from_numpy(clip.mel[stretch].astype(np.float32))
            wanted.append(mel)
            lifted = self._draw.random() < self.options.lifted_share
            seen.append(torch.logaddexp(mel, self._floor(mel.shape)) if lifted else mel)
            phones.append(torch.from_numpy(labels(clip.phones, clip.frames, VOCABULARY)[stretch]))
        return tuple(torch.stack(one).to(self.device) for one in (seen, wanted, phones))

    def _floor(self, shape: tuple[int, ...]) -> Tensor:
        """A noise floor as a mel, fluctuating as noise does."""
        level = self._draw.uniform(*LIFTED_FLOOR)
        return level + 0.25 * torch.randn(shape, generator=self._generator)

    def step(self, number: int, progress: float) -> dict[str, float]:
        options = self.options
        self._optimiser.param_groups[0]["lr"] = options.learning_rate * learning_rate_scale(
            number, progress, options.warm_up, options.hold
        )
        seen, wanted, phones = self._batch()
        strength = options.largest_noise * torch.rand((len(seen), 1, 1), generator=self._generator)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=options.half_precision):
            latents = self.model.encode(seen)
            noise = torch.randn(latents.shape, generator=self._generator) * strength
            noised = latents + noise.to(self.device)
            made = self.model.decode(noised)
            scores = self.classifier(noised.transpose(1, 2))
        scores = scores.float().unflatten(1, (len(VOCABULARY.phones), -1)).transpose(2, 3).flatten(2)
        losses = {
            "mel": functional.l1_loss(made.float(), wanted),
            "change": functional.l1_loss(made.float().diff(dim=1), wanted.diff(dim=1)),
            "phone": functional.cross_entropy(scores, phones),
        }
        total = losses["mel"] + options.change_weight * losses["change"] + options.phone_weight * losses["phone"]
        self._optimiser.zero_grad(set_to_none=True)
        total.backward()
        norm = nn.utils.clip_grad_norm_([*self.model.parameters(), *self.classifier.parameters()], 1.0)
        require_finite(float(total.detach() + norm), "loss or its gradient", number)
        self._optimiser.step()
        self.average.update(self.model, number)
        self._average_statistics()
        return {name: float(value.detach()) for name, value in losses.items()}

    def _average_statistics(self) -> None:
        """The averaged model takes the latents' running statistics, which the average of parameters leaves out."""
        for ours, theirs in zip(self.average.module.buffers(), self.model.buffers(), strict=True):
            ours.copy_(theirs)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Log-mel L1 of copies of held-out clips: as they are, and from latents with noise; and the latents' own
        statistics over all frames."""
        generator = torch.Generator().manual_seed(7)
        clean, noisy, latents = [], [], []
        for clip in self._held_out:
            mel = torch.from_numpy(clip.mel.astype(np.float32))[None].to(self.device)
            z = self.average.module.encode(mel)
            noise = 0.3 * torch.randn(z.shape, generator=generator).to(self.device)
            clean.append(float(functional.l1_loss(self.average.module.decode(z)[:, : clip.frames], mel)))
            noisy.append(float(functional.l1_loss(self.average.module.decode(z + noise)[:, : clip.frames], mel)))
            latents.append(z[0])
        every = torch.cat(latents)
        return {
            "mel": float(np.mean(clean)),
            "mel_noised": float(np.mean(noisy)),
            "latent_mean": float(every.mean(0).abs().max()),
            "latent_deviation": float(every.std(0).mean()),
        }

    def state(self) -> dict[str, Any]:
        version, internal, gauss = self._draw.getstate()
        return {
            "model": self.model.state_dict(),
            "classifier": self.classifier.state_dict(),
            "average": self.average.module.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "generator": self._generator.get_state(),
            "draw": [version, list(internal), gauss],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.classifier.load_state_dict(state["classifier"])
        self.average.module.load_state_dict(state["average"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._generator.set_state(state["generator"])
        version, internal, gauss = state["draw"]
        self._draw.setstate((version, tuple(internal), gauss))

    def export(self, folder: Path) -> None:
        """Write a ``wavvae`` folder that :meth:`engine.models.megatts3.mel_codec.MelCodec.load` reads."""
        export_codec(folder, self.average.module)


def export_codec(folder: Path, codec: MelCodec) -> None:
    """``config.yaml`` with the official entries and ours, and the weights in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "audio_sample_rate": SAMPLE_RATE,
        "hop_size": HOP,
        "vae_stride": codec.config.stride,
        "frames_multiple": codec.config.stride,
        "mel_codec": codec.config.as_dict(),
    }
    (folder / CONFIG_FILE).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    weights = {
        name: value.cpu().contiguous().to(torch.float16) if value.is_floating_point() else value.cpu()
        for name, value in codec.state_dict().items()
    }
    write_atomically(folder / WEIGHT_FILE, save(weights))


@torch.no_grad()
def initialise(codec: MelCodec, clips: tuple[Clip, ...]) -> None:
    """The corpus's mel statistics, and blocks that begin close to passing their input on."""
    mels = torch.from_numpy(np.concatenate([clip.mel for clip in clips[::7]]).astype(np.float32))
    codec.mel_mean.copy_(mels.mean(0))
    codec.mel_scale.copy_(mels.std(0).clamp(min=SMALLEST_SCALE))
    for name, parameter in codec.named_parameters():
        if name.endswith("gamma"):
            parameter.fill_(0.2)
