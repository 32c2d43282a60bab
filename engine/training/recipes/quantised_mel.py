"""Common part of the recipes of codecs with codes: a quantiser between encoder and decoder, and a decoder that gets the
speaker. See :class:`engine.training.recipes.mel_excerpts.ExcerptRecipe`.

The decoder depends strongly on the voice's mean mel and fails at means that it has not seen. So the mean is taken over
a random number of the voice's clips, from one to many, and never over the current clip alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from engine.files import write_atomically
from engine.front_end.frame_phones import labels
from engine.models.minis.frames import token_phones
from engine.models.networks.quantised_mel import CONFIG_FILE, WEIGHT_FILE, QuantisedMel
from engine.training.corpora import Clip
from engine.training.corpus import Corpus
from engine.training.recipes.mel_excerpts import VOCABULARY, Excerpt, ExcerptOptions, ExcerptRecipe, spectral_losses

MEAN_CLIPS = (1, 4, 32)
"""Numbers of clips of a voice for its mean mel; one is drawn for every item."""

Options = TypeVar("Options", bound=ExcerptOptions)


class QuantisedMelRecipe(ExcerptRecipe[Options, QuantisedMel]):
    """Trains a codec; a recipe adds its name, its architecture and how it rounds while it learns."""

    def __init__(
        self, corpus: Corpus, device: torch.device, options: Options, model: QuantisedMel, classifier: nn.Module
    ) -> None:
        self._means: dict[str, Tensor] = {}
        self._by_voice: dict[str, list[Clip]] = {}
        for clip in corpus.training:
            self._by_voice.setdefault(clip.voice, []).append(clip)
        super().__init__(corpus, device, options, model, classifier)

    def rounded(self, latents: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The numbers that the decoder is given in training, with a gradient, and further losses."""
        return self.model.quantiser(latents), {}

    def losses(self, excerpts: list[Excerpt]) -> dict[str, Tensor]:
        floors = [self._floor() for _ in excerpts]
        items = list(zip(excerpts, floors, strict=True))
        seen = torch.stack([self._lifted(one.mel, floor) for one, floor in items]).to(self.device)
        voices = torch.stack([self._told(one.clip.voice, floor) for one, floor in items]).to(self.device)
        mel = torch.stack([one.mel for one in excerpts]).to(self.device)
        phones = np.stack([token_phones(one.phones.numpy(), self.model.config.stride) for one in excerpts])
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.half_precision):
            numbers, further = self.rounded(self.model.latents(seen))
            made = self.model.decode_numbers(numbers, voices)
            scores = self.classifier(numbers)
        wanted = torch.from_numpy(phones).to(self.device)
        return {
            **spectral_losses(made, mel),
            "phone": functional.cross_entropy(scores.float().transpose(1, 2), wanted),
            **further,
        }

    def _told(self, voice: str, floor: float | None) -> Tensor:
        """The mean mel (bands,) for the decoder, of recordings with the same noise floor."""
        mean = self._some_mean(voice)
        return mean if floor is None else torch.logaddexp(mean, torch.tensor(floor))

    def _some_mean(self, voice: str) -> Tensor:
        """The mean mel (bands,) of some of the voice's clips."""
        clips = self._by_voice[voice]
        chosen = self._draw.sample(clips, min(len(clips), self._draw.choice(MEAN_CLIPS)))
        return torch.stack([_mean([clip]) for clip in chosen]).mean(0)

    def voices(self) -> dict[str, Tensor]:
        """The mean mel (bands,) of each voice, over all of its clips."""
        if not self._means:
            self._means = {voice: _mean(clips) for voice, clips in sorted(self._by_voice.items())}
        return self._means

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Log-mel L1 of copies of held-out clips; the share of phones that the classifier knows from the numbers; and
        how many different codes were used, of the first codebook if there are several."""
        model, stride = self.average.module, self.model.config.stride
        distances, known, used = [], [], set()
        for clip in self._held_out:
            frames = clip.frames // stride * stride
            mel = torch.from_numpy(clip.mel[:frames].astype(np.float32))[None].to(self.device)
            latents = model.latents(mel)
            numbers = model.quantiser(latents)
            copy = model.decode_numbers(numbers, self.voices()[clip.voice][None].to(self.device))
            distances.append(float(functional.l1_loss(copy, mel)))
            phones = torch.from_numpy(token_phones(labels(clip.phones, clip.frames, VOCABULARY)[:frames], stride)).to(
                self.device
            )
            known.append(float((self.classifier(numbers)[0].argmax(-1) == phones).float().mean()))
            used |= set(model.quantiser.codes(latents)[0].reshape(len(phones), -1)[:, 0].tolist())
        return {"mel": float(np.mean(distances)), "phones": float(np.mean(known)), "codes": float(len(used))}

    def export(self, folder: Path) -> None:
        """Write a folder that :func:`engine.models.networks.quantised_mel.read_quantised_mel` reads."""
        folder.mkdir(parents=True, exist_ok=True)
        means = {voice: [round(value, 4) for value in mean.tolist()] for voice, mean in self.voices().items()}
        content = {**self.model.config.as_dict(), "voices": means}
        (folder / CONFIG_FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        weights = {name: value.cpu().contiguous().half() for name, value in self.average.module.state_dict().items()}
        write_atomically(folder / WEIGHT_FILE, save(weights))


def _mean(clips: list[Clip]) -> Tensor:
    """The mean mel (bands,) over all frames of ``clips``."""
    total = sum(clip.mel.astype(np.float32).sum(0) for clip in clips)
    return torch.from_numpy(total / sum(clip.frames for clip in clips))
