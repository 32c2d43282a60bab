"""Recipe ``voice-megatts3``, a MegaTTS 3 that speaks naturally: a DiT of the official layout on a teacher's latents in
hundreds of voices, two frames at a time, with each voice's formant scale.

MegaTTS 3 receives the duration of every phone, so the alignment is given: the corpus's phone times in training, a table
of mean durations at synthesis. The vocoder of ``voice-vocoder`` reads a recording's latents off its mel; training uses
the teacher's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
import yaml
from safetensors.torch import save
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from paretone.files import write_atomically
from paretone.front_end.phones import PHONES
from paretone.models.megatts3.checkpoint import CONFIG, TRANSFORMER
from paretone.models.megatts3.config import LATENT_STRIDE, DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.megatts3.phones import ENGLISH_TONE
from paretone.models.minis.megatts3_mini import DURATION_HOP, VOCABULARY, phones_of_frames
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.natural_vocoder import GROUP, GROUPED, grouped
from paretone.models.minis.speaking import WEIGHTS
from paretone.training.batches import Corpus, held_out_pairs
from paretone.training.flow_matching import (
    LatentBatch,
    LatentFlowOptions,
    LatentProblem,
    draw_latent_problem,
    errors_by_time,
    latent_synthesis_problem,
    span_error,
)
from paretone.training.learner import LayerMatrices
from paretone.training.natural_corpus import Alignment, AlignmentOptions, NaturalClip, drawn_alignment, voice_frames
from paretone.training.recipes.bundled_recipe import BundledOptions, BundledRecipe, open_gates

_ATTENTION = partial(sdpa_kernel, SDPBackend.MATH)
"""Unfused attention: on short items the fused kernel's backward pass costs 10 % more per step on CPUs."""
LAYER_MATRICES = LayerMatrices("encoder.layers.", apart_from="attention_norm")


@dataclass(frozen=True)
class LatentClip:
    voice: str
    latents: np.ndarray = field(repr=False)
    """(n, latent) float16."""
    phones: np.ndarray = field(repr=False)
    """(phones,) numbers of the phone table."""
    phones_of_frames: np.ndarray = field(repr=False)
    """(n · stride,) indices into ``phones``, from 1."""
    tones: np.ndarray | None = field(default=None, repr=False)
    """(phones,) official tone numbers; ``None``: English."""
    prompt: int = 0
    """Latent frames of prompt at the beginning."""

    @property
    def frames(self) -> int:
        return len(self.latents)

    @property
    def all_tones(self) -> np.ndarray:
        return np.full(len(self.phones), ENGLISH_TONE) if self.tones is None else self.tones


def collate_latents(items: Sequence[Sequence[LatentClip]]) -> LatentBatch:
    """Batch whose items are one clip, or two of one voice joined; a prompt inside a clip counts as the first."""
    lengths = [sum(clip.frames for clip in item) for item in items]
    spoken = [np.concatenate([clip.phones for clip in item]) for item in items]
    first = items[0][0]
    stride = len(first.phones_of_frames) // first.frames
    latents = torch.zeros(len(items), max(lengths), first.latents.shape[1])
    phones, tones = (torch.zeros(len(items), max(map(len, spoken)), dtype=torch.long) for _ in range(2))
    places = torch.zeros(len(items), max(lengths) * stride, dtype=torch.long)
    for row, item in enumerate(items):
        phones[row, : len(spoken[row])] = torch.from_numpy(spoken[row])
        tones[row, : len(spoken[row])] = torch.from_numpy(np.concatenate([clip.all_tones for clip in item]))
        start = before = 0
        for clip in item:
            end = start + clip.frames
            latents[row, start:end] = torch.from_numpy(clip.latents.astype(np.float32))
            places[row, start * stride : end * stride] = torch.from_numpy(clip.phones_of_frames + before)
            start, before = end, before + len(clip.phones)
    joins = [item[0].frames if len(item) > 1 else item[0].prompt for item in items]
    return LatentBatch(latents, phones, tones, places, torch.tensor(lengths), torch.tensor(joins))


@torch.no_grad()
def initialise(model: MegaDiT) -> None:
    """AdaLN and output at zero, but with half-open gates; small tone embeddings, as English has no tones."""
    open_gates(model)
    model.postnet.weight.zero_()
    model.postnet.bias.zero_()
    model.tone_embed.weight.mul_(0.1)


def export_transformer(folder: Path, model: MegaDiT, hop: int, stride: int) -> None:
    """Write ``diffusion_transformer/`` into ``folder``. ``hop``: samples per frame; ``stride``: frames per latent."""
    place = folder / TRANSFORMER
    place.mkdir(parents=True, exist_ok=True)
    weights = {name: value.cpu().contiguous().half() for name, value in model.state_dict().items()}
    write_atomically(place / WEIGHTS, save(weights))
    content = {"audio_sample_rate": SAMPLE_RATE, "hop_size": hop, "win_size": 1024, "frames_multiple": stride}
    (place / CONFIG).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


ARCHITECTURE = DiTConfig(
    dim=256,
    layers=8,
    heads=4,
    ff_hidden=512,
    latent=GROUPED,
    local_cond=160,
    phone_layers=2,
    phone_heads=4,
    phone_ff_hidden=512,
)
NUMBERS = {phone: number for number, phone in enumerate(PHONES, start=1)}
"""Rows of the phone table; 0 is padding."""


@dataclass(frozen=True)
class NaturalMegaOptions(BundledOptions):
    frames: int = 1_600
    joined_share: float = 0.8
    objective: LatentFlowOptions = field(default_factory=LatentFlowOptions)
    alignment: AlignmentOptions = field(default_factory=AlignmentOptions)


@dataclass(frozen=True)
class GroupedClip:
    """Clip of the corpus with grouped latents."""

    clip: NaturalClip

    @property
    def voice(self) -> str:
        return self.clip.voice

    @property
    def frames(self) -> int:
        return len(self.clip.latents) // GROUP


class NaturalMega(BundledRecipe[NaturalMegaOptions, GroupedClip, MegaDiT]):
    name = "voice-megatts3"
    layers = LAYER_MATRICES
    term = "flow"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: NaturalMegaOptions = NaturalMegaOptions(),
        architecture: DiTConfig = ARCHITECTURE,
    ) -> None:
        torch.manual_seed(options.seed)
        model = MegaDiT(architecture)
        initialise(model)
        clips = [GroupedClip(clip) for clip in corpus.training]
        super().__init__(corpus, clips, model.requires_grad_(True).train(), device, options)

    def seen(self, item: Sequence[GroupedClip]) -> list[LatentClip]:
        aligned = drawn_alignment(self.options.alignment, self.progress, self.generator)
        return [latent_clip(one.clip, aligned) for one in item]

    def loss(self, items: list[list[GroupedClip]]) -> Tensor:
        batch = collate_latents([self.seen(item) for item in items])
        problem = draw_latent_problem(batch, self.options.objective, self.generator).to(self.device)
        return self._error(self.model, problem)

    def _error(self, model: MegaDiT, problem: LatentProblem) -> Tensor:
        with self.autocast(), _ATTENTION():
            velocity = model(
                problem.noised,
                problem.condition,
                problem.prompt,
                problem.phones,
                problem.tones,
                problem.phones_of_frames,
                problem.times,
                problem.mask,
            )
        return span_error(velocity, problem.target, problem.span)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Error by time, with a known prompt and the clip after it unknown."""

        def error(batch: LatentBatch, time: float, generator: torch.Generator) -> Tensor:
            problem = latent_synthesis_problem(batch, time, generator).to(self.device)
            return self._error(self.average.module, problem)

        return errors_by_time(self._validation_batches, error)

    @cached_property
    def _validation_batches(self) -> list[LatentBatch]:
        held_out = [latent_clip(clip) for clip in self.corpus.held_out]
        batches = held_out_pairs(held_out, self.options.validation_items, 8)
        return [collate_latents(items) for items in batches]

    def export(self, folder: Path) -> None:
        """Write ``diffusion_transformer/`` (float16, official keys) and ``vocab.txt``, with a phone per line."""
        export_transformer(folder, self.average.module, DURATION_HOP, LATENT_STRIDE)
        (folder / VOCABULARY).write_text("".join(phone + "\n" for phone in PHONES), encoding="utf-8")


def latent_clip(clip: NaturalClip, aligned: Alignment = tuple) -> LatentClip:
    """``clip`` as model input, with its phones at the times given by ``aligned``."""
    latents = groups_of(clip)
    phones = aligned(clip.phones)
    numbers = np.array([NUMBERS[name] for name, _, _ in phones], np.int64)
    places = phones_of_frames(phones, len(latents) * LATENT_STRIDE, SAMPLE_RATE, DURATION_HOP)
    return LatentClip(clip.voice, latents.numpy(), numbers, places)


def groups_of(clip: NaturalClip) -> Tensor:
    """The clip's latents and formant scale, (n, 70) float32."""
    return grouped(voice_frames(clip))
