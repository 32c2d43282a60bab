"""The recipe of the codec in the bundled MegaTTS 3, ``mel-codec``: mel frames to latents that a flow can predict.

The decoder learns from latents with noise of a random strength per item. This makes it robust to a flow model's errors,
and the latents smooth: neighbours mean similar sounds. Every latent is normalised to variance one (batch statistics in
training), so that the encoder cannot escape the noise by scale.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import yaml
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from engine.files import write_atomically
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.minis.megatts3_mini.mel_codec import CONFIG_FILE, WEIGHT_FILE, MelCodec, MelCodecConfig
from engine.training.corpus import Corpus
from engine.training.recipes.mel_excerpts import VOCABULARY, Excerpt, ExcerptOptions, ExcerptRecipe, spectral_losses


@dataclass(frozen=True)
class MelCodecOptions(ExcerptOptions):
    """Options of the recipe."""

    largest_noise: float = 0.4
    """Standard deviation of the noise on the latents, drawn for every item between zero and this."""
    lifted_share: float = 0.4


class MelCodecRecipe(ExcerptRecipe[MelCodecOptions, MelCodec]):
    """Trains a mel codec; see :class:`engine.training.recipe.Recipe`."""

    name = "mel-codec"

    def __init__(
        self,
        corpus: Corpus,
        device: torch.device,
        options: MelCodecOptions = MelCodecOptions(),
        architecture: MelCodecConfig = MelCodecConfig(),
    ) -> None:
        torch.manual_seed(options.seed)
        model = MelCodec(architecture)
        # Four phones a latent frame, by a perceptron: a linear classifier would bend the latents to its planes.
        classifier = nn.Sequential(
            nn.Conv1d(architecture.latent, 192, 1),
            nn.GELU(),
            nn.Conv1d(192, architecture.stride * len(VOCABULARY.phones), 1),
        )
        super().__init__(corpus, device, options, model, classifier)

    def losses(self, excerpts: list[Excerpt]) -> dict[str, Tensor]:
        options = self.options
        seen, wanted = self._seen(excerpts)
        strength = options.largest_noise * torch.rand((len(seen), 1, 1), generator=self._generator)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=options.half_precision):
            latents = self.model.encode(seen)
            noise = torch.randn(latents.shape, generator=self._generator) * strength
            noised = latents + noise.to(self.device)
            made = self.model.decode(noised)
            scores = self.classifier(noised.transpose(1, 2))
        scores = scores.float().unflatten(1, (len(VOCABULARY.phones), -1)).transpose(2, 3).flatten(2)
        phones = torch.stack([one.phones for one in excerpts]).to(self.device)
        return {**spectral_losses(made, wanted), "phone": functional.cross_entropy(scores, phones)}

    def _seen(self, excerpts: list[Excerpt]) -> tuple[Tensor, Tensor]:
        """Input of the encoder and target of the decoder, both (B, frames, bands)."""
        seen = [self._lifted(one.mel, self._floor()) for one in excerpts]
        wanted = [one.mel for one in excerpts]
        return torch.stack(seen).to(self.device), torch.stack(wanted).to(self.device)

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

    def export(self, folder: Path) -> None:
        """Write a ``wavvae`` folder that :meth:`engine.models.minis.megatts3_mini.mel_codec.MelCodec.load` reads."""
        export_codec(folder, self.average.module)


def export_codec(folder: Path, codec: MelCodec) -> None:
    """``config.yaml`` with the official entries and ours, and the weights in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "audio_sample_rate": SAMPLE_RATE,
        "hop_size": HOP,
        "vae_stride": codec.config.stride,
        "frames_multiple": codec.config.stride,
        "mel_codec": asdict(codec.config),
    }
    (folder / CONFIG_FILE).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    weights = {
        name: value.cpu().contiguous().to(torch.float16) if value.is_floating_point() else value.cpu()
        for name, value in codec.state_dict().items()
    }
    write_atomically(folder / WEIGHT_FILE, save(weights))
