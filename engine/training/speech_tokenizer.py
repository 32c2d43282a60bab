"""The recipe of the bundled language model's speech tokenizer: mel frames to one code of 1,920 for every two.

What carries over from trying: a phone classifier that is linear cannot tell 41 phones from four numbers, a perceptron
can. The decoder leans on the mean mel of the voice that it is told, and falls apart at a mean that it has not seen;
hence the mean here is over anything from one clip to many of the voice, and never of the clip at hand alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from engine.files import write_atomically
from engine.front_end.durations import labels
from engine.models.lm_mini.layout import token_phones
from engine.models.lm_mini.speech_tokenizer import CONFIG_FILE, WEIGHT_FILE, SpeechTokenizer, SpeechTokenizerConfig
from engine.training.corpora import Clip, Corpus
from engine.training.mel_excerpts import VOCABULARY, Excerpt, ExcerptOptions, ExcerptRecipe, spectral_losses

MEAN_CLIPS = (1, 4, 32)
"""Over how many clips of a voice the mean mel is taken, drawn for every item."""


@dataclass(frozen=True)
class SpeechTokenizerOptions(ExcerptOptions):
    """What a run of the recipe can change."""

    frames: int = 64
    batch: int = 24
    phone_weight: float = 0.4


class SpeechTokenizerRecipe(ExcerptRecipe[SpeechTokenizerOptions]):
    """Trains a speech tokenizer; see :class:`engine.training.session.Recipe`."""

    name = "speech-tokenizer"

    def __init__(
        self,
        corpus: Corpus,
        device: torch.device,
        options: SpeechTokenizerOptions = SpeechTokenizerOptions(),
        architecture: SpeechTokenizerConfig = SpeechTokenizerConfig(),
    ) -> None:
        torch.manual_seed(options.seed)
        model = SpeechTokenizer(architecture)
        classifier = nn.Sequential(
            nn.Linear(len(architecture.levels), 192), nn.GELU(), nn.Linear(192, len(VOCABULARY.phones))
        )
        self._means: dict[str, Tensor] = {}
        self._by_voice: dict[str, list[Clip]] = {}
        for clip in corpus.training:
            self._by_voice.setdefault(clip.voice, []).append(clip)
        super().__init__(corpus, device, options, model, classifier)

    def losses(self, excerpts: list[Excerpt]) -> dict[str, Tensor]:
        mel = torch.stack([one.mel for one in excerpts]).to(self.device)
        voices = torch.stack([self._some_mean(one.clip.voice) for one in excerpts]).to(self.device)
        phones = np.stack([token_phones(one.phones.numpy(), self.model.config.stride) for one in excerpts])
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.half_precision):
            numbers = self.model.quantised(mel)
            made = self.model.decode_numbers(numbers, voices)
            scores = self.classifier(numbers)
        wanted = torch.from_numpy(phones).to(self.device)
        return {
            **spectral_losses(made, mel),
            "phone": functional.cross_entropy(scores.float().transpose(1, 2), wanted),
        }

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
        how many different codes were used."""
        model, stride = self.average.module, self.model.config.stride
        distances, known, used = [], [], set()
        for clip in self._held_out:
            frames = clip.frames // stride * stride
            mel = torch.from_numpy(clip.mel[:frames].astype(np.float32))[None].to(self.device)
            numbers = model.quantised(mel)
            copy = model.decode_numbers(numbers, self.voices()[clip.voice][None].to(self.device))
            distances.append(float(functional.l1_loss(copy, mel)))
            phones = torch.from_numpy(token_phones(labels(clip.phones, clip.frames, VOCABULARY)[:frames], stride)).to(
                self.device
            )
            known.append(float((self.classifier(numbers)[0].argmax(-1) == phones).float().mean()))
            used |= set(model.quantiser.codes(numbers)[0].tolist())
        return {"mel": float(np.mean(distances)), "phones": float(np.mean(known)), "codes": float(len(used))}

    def export(self, folder: Path) -> None:
        """Write a folder that :class:`engine.models.lm_mini.speech_tokenizer.TokenizerFolder` reads."""
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
