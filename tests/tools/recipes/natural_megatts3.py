"""Recipe ``voice-megatts3``, a MegaTTS 3 that speaks naturally: a DiT of the official layout on a teacher's latents in
hundreds of voices, two frames at a time, with each voice's formant scale.

MegaTTS 3 receives the duration of every phone, so the alignment is given: the corpus's phone times in training, a table
of mean durations at synthesis. The vocoder of ``voice-vocoder`` reads a recording's latents off its mel; training uses
the teacher's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

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
from paretone.models.minis.megatts3_mini import DURATION_HOP, VOCABULARY
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.natural_vocoder import GROUP, GROUPED
from paretone.models.minis.speaking import WEIGHTS
from paretone.training.batches import Corpus, held_out_pairs, moved
from paretone.training.flow_matching import (
    LONGEST_BEGINNING,
    UNIFORM_TIMES,
    LatentBatch,
    LatentProblem,
    drawn_times,
    latent_problem,
    latent_synthesis_problem,
    span_error,
)
from paretone.training.megatts3_flow import LAYER_MATRICES, LatentClip, collate_latents, latent_clip
from paretone.training.natural_corpus import NaturalClip
from tests.tools.recipes.alignments import AlignmentOptions, drawn_alignment
from tests.tools.recipes.bundled_recipe import BundledOptions, BundledRecipe, errors_by_time, open_gates

_ATTENTION = partial(sdpa_kernel, SDPBackend.MATH)
"""Unfused attention: on short items the fused kernel's backward pass costs 10 % more per step on CPUs."""


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


@dataclass(frozen=True)
class LatentFlowOptions:
    """Three branches are trained for guidance: prompt and text, text alone, neither; all know where the prompt is."""

    unprompted: float = 0.5
    """Share of single clips without a prompt; the others are prompted with their own beginning."""
    drop_prompt: float = 0.15
    """Share of items in the second branch: text without the prompt's latents."""
    drop_both: float = 0.12
    """Share of items in the third branch: neither text nor latents."""


NO_PHONE, NO_TONE = 301, 31
"""Phone and tone of the third branch."""


def draw_latent_problem(batch: LatentBatch, options: LatentFlowOptions, generator: torch.Generator) -> LatentProblem:
    """Draw the training problem of a step from one generator."""
    count = len(batch.latents)
    beginnings = (LONGEST_BEGINNING * torch.rand(count, generator=generator) * batch.lengths).long()
    unprompted = torch.rand(count, generator=generator) < options.unprompted
    ends = torch.where(batch.joins > 0, batch.joins, beginnings.masked_fill(unprompted, 0))
    times = drawn_times(count, UNIFORM_TIMES, generator)
    choice = torch.rand(count, generator=generator)
    problem = latent_problem(batch, ends, times, generator)
    mute = choice < options.drop_both + options.drop_prompt
    textless = (choice < options.drop_both)[:, None] & (batch.phones > 0)
    return replace(
        problem,
        condition=problem.condition.masked_fill(mute[:, None, None], 0),
        phones=torch.where(textless, NO_PHONE, batch.phones),
        tones=torch.where(textless, NO_TONE, batch.tones),
    )


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
        return [latent_clip(replace(one.clip, phones=aligned(one.clip.phones))) for one in item]

    def loss(self, items: list[list[GroupedClip]]) -> Tensor:
        batch = collate_latents([self.seen(item) for item in items])
        problem = moved(draw_latent_problem(batch, self.options.objective, self.generator), self.device)
        return self._error(self.model, problem)

    def _error(self, model: MegaDiT, problem: LatentProblem) -> Tensor:
        with self.autocast(), _ATTENTION():
            known = model.conditions(
                problem.condition, problem.prompt, problem.phones, problem.tones, problem.phones_of_frames, problem.mask
            )
            velocity = model.follow(problem.noised, problem.prompt, known, problem.times, problem.mask)
        return span_error(velocity, problem.target, problem.span)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Error by time, with a known prompt and the clip after it unknown."""

        def error(batch: LatentBatch, time: float, generator: torch.Generator) -> Tensor:
            problem = moved(latent_synthesis_problem(batch, time, generator), self.device)
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
