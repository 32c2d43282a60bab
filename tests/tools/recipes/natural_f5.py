"""Recipe ``voice-f5``, an F5 that speaks naturally: a DiT that reads one phone per mel frame and fills masked spans, on
a teacher's speech in hundreds of voices, told apart only by the prompt.

The alignment, which a small model cannot learn, is given: token k of the text belongs to mel frame k. The layout is
official, so the official code runs the result. The alignment's precision changes during training, see
:mod:`paretone.training.natural_corpus`.

A log mel has a standard deviation of three to four and a mean far from zero; a small model spends its first thousand
steps on that. The model is therefore trained on normalised mels; export folds means and deviations into its first and
last linear layers, which keeps the layout official. The noise of flow matching keeps its standard deviation of one on
the plain mel.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.front_end.phones import PhoneVocabulary, labels
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.f5.config import HOP, MEL_BANDS, NATURAL_PHONES, SAMPLE_RATE, BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import PREFIX, save_in_half
from paretone.training.batches import Corpus, held_out_pairs, moved
from paretone.training.features import Example, collate, with_short_prompts
from paretone.training.fine_tuning import diffusion_transformer
from paretone.training.flow_matching import (
    LAYER_MATRICES,
    FlowMatchingDraw,
    FlowMatchingOptions,
    SpeechBatch,
    draw_problem,
    span_error,
    synthesis_problem,
    velocity_field,
)
from paretone.training.natural_corpus import NaturalClip
from paretone.training.spoken_tokens import VOCABULARY
from tests.tools.recipes.alignments import Alignment, AlignmentOptions, drawn_alignment, evened
from tests.tools.recipes.bundled_recipe import BundledOptions, BundledRecipe, errors_by_time, open_gates

SMALL_F5 = BackboneConfig(
    "DiT", dim=256, depth=8, heads=4, ff_mult=2, text_dim=128, text_mask_padding=True, conv_layers=3
)
"""A recipe adds the size of its vocabulary."""


def save_official(path: Path, model: DiT, step: int, metadata: Mapping[str, str] | None = None) -> None:
    """Write the weights under their official keys atomically in float16. Raises :class:`OSError`."""
    weights = {f"{PREFIX}{key}": value for key, value in model.state_dict().items()}
    save_in_half(path, weights | {"initted": torch.tensor(True), "step": torch.tensor(step)}, metadata or {})


def predicted_velocity(model: DiT, ids: Tensor, problem: FlowMatchingDraw) -> Tensor:
    """The model's velocity (B, frames, bands), with gradients and one time per item, unlike in sampling."""
    return velocity_field(model, ids, problem)(problem.noised, problem.times)


@torch.no_grad()
def initialise(model: DiT) -> None:
    """Official initialisation (AdaLN and output at zero), but with half-open gates, which save a small model hundreds
    of steps."""
    open_gates(model)
    model.proj_out.weight.zero_()
    model.proj_out.bias.zero_()
    model.text_embed.text_embed.weight.mul_(0.5)


MIDDLE = 0.5
"""Time at which the noised mel has mean zero and variance one."""


@dataclass(frozen=True)
class MelNormalisation:
    """Statistics (bands,) of a corpus."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, mels: Sequence[np.ndarray]) -> MelNormalisation:
        frames = np.concatenate(mels).astype(np.float32)
        return cls(torch.from_numpy(frames.mean(0)), torch.from_numpy(frames.std(0)))

    def to(self, device: torch.device) -> MelNormalisation:
        return moved(self, device)

    @property
    def noised_mean(self) -> Tensor:
        return MIDDLE * self.mean

    @property
    def noised_deviation(self) -> Tensor:
        return ((1 - MIDDLE) ** 2 + (MIDDLE * self.deviation) ** 2).sqrt()

    def problem(self, problem: FlowMatchingDraw) -> FlowMatchingDraw:
        """``problem`` on normalised mels; the unknown part, zero on the plain mel, becomes −mean / deviation."""
        return replace(
            problem,
            noised=(problem.noised - self.noised_mean) / self.noised_deviation,
            condition=(problem.condition - self.mean) / self.deviation,
        )

    def velocity(self, predicted: Tensor) -> Tensor:
        """Velocity of the plain mel from the model's prediction (…, bands)."""
        return predicted * self.deviation + self.mean

    @torch.no_grad()
    def folded(self, model: DiT) -> DiT:
        """Copy of ``model`` with plain mels as input and their velocity as output."""
        plain = copy.deepcopy(model)
        bands = len(self.mean)
        entry, leave = plain.input_embed.proj, plain.proj_out
        noised, condition = entry.weight[:, :bands], entry.weight[:, bands : 2 * bands]
        noised.div_(self.noised_deviation)
        condition.div_(self.deviation)
        entry.bias.sub_(noised @ self.noised_mean + condition @ self.mean)
        leave.weight.mul_(self.deviation[:, None])
        leave.bias.copy_(self.velocity(leave.bias))
        return plain

    @torch.no_grad()
    def unfolded(self, plain: DiT) -> DiT:
        """Copy of ``plain`` for normalised mels: the inverse of :meth:`folded`."""
        model = copy.deepcopy(plain)
        bands = len(self.mean)
        entry, leave = model.input_embed.proj, model.proj_out
        noised, condition = entry.weight[:, :bands], entry.weight[:, bands : 2 * bands]
        entry.bias.add_(noised @ self.noised_mean + condition @ self.mean)
        noised.mul_(self.noised_deviation)
        condition.mul_(self.deviation)
        leave.weight.div_(self.deviation[:, None])
        leave.bias.copy_((leave.bias - self.mean) / self.deviation)
        return model


def export_layout(folder: Path, name: str, model: DiT, vocabulary: PhoneVocabulary, step: int) -> None:
    """Write ``model.safetensors`` (float16, official keys), ``model.yaml``, ``vocab.txt``."""
    folder.mkdir(parents=True, exist_ok=True)
    save_official(folder / "model.safetensors", model, step)
    (folder / "model.yaml").write_text(yaml.safe_dump(_configuration(name, model), sort_keys=False), encoding="utf-8")
    (folder / "vocab.txt").write_text("".join(phone + "\n" for phone in vocabulary.phones), encoding="utf-8")


def _configuration(name: str, model: DiT) -> dict[str, dict]:
    config = model.config
    entries = ("dim", "depth", "heads", "ff_mult", "text_dim", "text_mask_padding", "conv_layers")
    spectrogram: dict[str, Any] = {"target_sample_rate": SAMPLE_RATE, "n_mel_channels": MEL_BANDS, "hop_length": HOP}
    spectrogram |= {"win_length": 1024, "n_fft": 1024, "mel_spec_type": "vocos"}
    return {
        "model": {
            "name": name,
            "tokenizer": "custom",
            "text_frontend": NATURAL_PHONES,
            "backbone": config.backbone,
            "arch": {entry: getattr(config, entry) for entry in entries},
            "mel_spec": spectrogram,
        }
    }


MODEL = "f5-mini"
"""Architecture of exports, as profiles and tables name it."""
ARCHITECTURE = replace(SMALL_F5, text_num_embeds=len(VOCABULARY.phones))


@dataclass(frozen=True)
class NaturalF5Options(BundledOptions):
    frames: int = 2_000
    objective: FlowMatchingOptions = field(
        default_factory=lambda: FlowMatchingOptions(
            whole_second_clip=0.8, drop_audio=0.05, drop_both=0.1, uniform_times=0.3
        )
    )
    joined_share: float = 0.8
    shortest_prompt: int = 70
    """Frames of the first clip of a pair are drawn between this and ``longest_prompt``."""
    longest_prompt: int = 350
    alignment: AlignmentOptions = field(default_factory=AlignmentOptions)


class NaturalF5(BundledRecipe[NaturalF5Options, NaturalClip, DiT]):
    """Trains the model on normalised mels; the export has the official layout."""

    name = "voice-f5"
    layers = LAYER_MATRICES
    term = "flow"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: NaturalF5Options = NaturalF5Options(),
        architecture: BackboneConfig = ARCHITECTURE,
        initial: Path | None = None,
    ) -> None:
        """``initial``: folder of an exported model to start from instead of random weights, with the alignment of a
        late training stage. Raises :class:`CheckpointError`."""
        normalisation = MelNormalisation.of([clip.mel for clip in corpus.training[::7]])
        if initial:
            checkpoint = read_f5_checkpoint(initial)
            if checkpoint.config != architecture or checkpoint.text_front_end != NATURAL_PHONES:
                raise CheckpointError(f"{checkpoint.path} is not of the model that {self.name} makes.")
            model = normalisation.unfolded(diffusion_transformer(checkpoint))
            model.train().requires_grad_(True)
            options = replace(options, alignment=replace(options.alignment, exact_until=0.0))
            self._initial = fingerprint(checkpoint.path)
        else:
            torch.manual_seed(options.seed)
            model = DiT(architecture)
            initialise(model)
            self._initial = "random"
        super().__init__(corpus, corpus.training, model, device, options)
        self._normalisation = normalisation.to(device)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "initial_weights": self._initial}

    @property
    def prompt_frames(self) -> int:
        """Frames of the first clip of a pair: the geometric mean of the range."""
        return round(math.sqrt(self.options.shortest_prompt * self.options.longest_prompt))

    def loss(self, items: list[list[NaturalClip]]) -> Tensor:
        batch = self.laid_out(items)
        problem = moved(draw_problem(batch, self.options.objective, self.generator), self.device)
        return self._error(self.model, batch, problem)

    def laid_out(self, items: list[list[NaturalClip]]) -> SpeechBatch:
        """Batch of ``items``; pairs keep only an excerpt of the first clip, of the same length in the whole batch."""
        # Each item is aligned when its turn comes: the order of random numbers.
        seen = map(self.seen, items)
        return with_short_prompts(seen, self.options.shortest_prompt, self.options.longest_prompt, self.generator)

    def _error(self, model: DiT, batch: SpeechBatch, problem: FlowMatchingDraw) -> Tensor:
        """Span error of the normalised mel's velocity."""
        normalisation = self._normalisation
        with self.autocast():
            predicted = predicted_velocity(model, batch.ids.to(self.device), normalisation.problem(problem))
        target = (problem.target - normalisation.mean) / normalisation.deviation
        return span_error(predicted, target, problem.span)

    def seen(self, item: Sequence[NaturalClip]) -> list[Example]:
        aligned = drawn_alignment(self.options.alignment, self.progress, self.generator)
        return [aligned_example(clip, aligned) for clip in item]

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Span errors by time, with a known prompt and the clip after it unknown: with exact alignment, and with phones
        spread over their words."""

        def error(batch: SpeechBatch, time: float, generator: torch.Generator) -> Tensor:
            problem = moved(synthesis_problem(batch, time, generator), self.device)
            return self._error(self.average.module, batch, problem)

        exact, spread = (errors_by_time(batches, error) for batches in self._validation_batches)
        return exact | {f"{name}, by word": value for name, value in spread.items()}

    @cached_property
    def _validation_batches(self) -> tuple[list[SpeechBatch], list[SpeechBatch]]:
        held_out = held_out_pairs(self.corpus.held_out, self.options.validation_items, 8)

        def batches(aligned: Alignment) -> list[SpeechBatch]:
            return [
                collate([[aligned_example(clip, aligned) for clip in item] for item in items]) for items in held_out
            ]

        return batches(tuple), batches(evened)

    def export(self, folder: Path) -> None:
        """Write the official layout: ``model.safetensors``, ``model.yaml``, ``vocab.txt``."""
        plain = self._normalisation.folded(self.average.module)
        export_layout(folder, MODEL, plain, VOCABULARY, self.steps)


def aligned_example(clip: NaturalClip, aligned: Alignment = tuple) -> Example:
    """``clip`` as model input, with its phones at the times given by ``aligned``."""
    return Example(clip.voice, labels(aligned(clip.phones), clip.frames, VOCABULARY), clip.mel)
