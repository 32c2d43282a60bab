"""Conditional flow matching objectives of F5-TTS, which fills a masked span of speech, and MegaTTS 3, which generates
the latents after a prompt.

The straight path from noise x₀ to speech x₁ is xₜ = (1 − t)·x₀ + t·x₁, its velocity x₁ − x₀; the model sees xₜ, the
speech outside the span, the text, and t, and is scored by the squared error of its velocity inside the span (Chen et
al., "F5-TTS", arXiv 2410.06885, section 3.1; dropping of the conditions as in the official ``model/cfm.py``).

Drawing, predicting and scoring are separate functions, so that guidance-free training can replace the target.

MegaTTS 3: the prompt comes first, with noise-free latents; the text is phones and the phone of every mel frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from paretone.models.f5.dit import DiT
from paretone.models.networks.layers import modulate_items
from paretone.training.learner import LayerMatrices


def drawn_times(count: int, uniform: float, generator: torch.Generator) -> Tensor:
    """(count,) times, stratified over the batch so that every step has early and late ones; a share of ``uniform`` is
    uniform, the others are warped towards the noise like sway sampling."""
    times = (torch.randperm(count, generator=generator) + torch.rand(count, generator=generator)) / count
    swayed = 1 - torch.cos(math.pi / 2 * times)
    return torch.where(torch.rand(count, generator=generator) < uniform, times, swayed)


Field = Callable[[Tensor, Tensor], Tensor]
"""Maps states (B, frames, bands) and times (B,), or intervals (B, 2), to velocities (B, frames, bands)."""
LAYER_MATRICES = LayerMatrices("transformer_blocks.", apart_from="attn_norm")
"""Weights of a :class:`paretone.models.f5.dit.DiT` that Muon trains."""


@dataclass(frozen=True)
class SpeechBatch:
    """Items of several lengths, padded at the end."""

    mel: Tensor
    """(B, frames, bands), zero in the padding."""
    ids: Tensor
    """(B, frames) one token a frame, −1 in the padding."""
    lengths: Tensor
    """(B,) frames of every item."""
    joins: Tensor
    """(B,) first frame of the second clip of the same voice, 0 for a single clip."""

    @property
    def mask(self) -> Tensor:
        return torch.arange(self.mel.shape[1], device=self.mel.device)[None] < self.lengths[:, None]


@dataclass(frozen=True)
class FlowMatchingOptions:
    shortest_span: float = 0.7
    """Minimum share of an item in the masked span; the maximum is all of it."""
    whole_second_clip: float = 0.6
    """Share of joined items with exactly the second clip masked, as in synthesis after a prompt."""
    drop_audio: float = 0.25
    """Share of batches with text but without the surrounding speech."""
    drop_both: float = 0.15
    """Share of batches without either; these train the unconditional branch of guidance."""
    uniform_times: float = 0.5
    """Share of uniform times; the others are warped towards the noise like sway sampling."""


@dataclass(frozen=True)
class FlowMatchingDraw:
    """One random training problem for a batch."""

    noised: Tensor
    """xₜ, (B, frames, bands)."""
    condition: Tensor
    """(B, frames, bands), the speech outside the span; zero inside, and where it is dropped."""
    target: Tensor
    """x₁ − x₀, (B, frames, bands)."""
    times: Tensor
    """(B,)."""
    span: Tensor
    """(B, frames), true in the scored frames."""
    mask: Tensor
    """(B, frames), true within the items."""
    drops_text: bool


Draw = TypeVar("Draw", bound=FlowMatchingDraw)


def draw_problem(batch: SpeechBatch, options: FlowMatchingOptions, generator: torch.Generator) -> FlowMatchingDraw:
    """Draw the training problem of a step from one generator."""
    choice = float(torch.rand(1, generator=generator))
    # The span to learn is a random one, or exactly the second clip.
    count = len(batch.mel)
    shares = options.shortest_span + (1 - options.shortest_span) * torch.rand(count, generator=generator)
    sizes = (shares * batch.lengths).long()
    starts = ((batch.lengths - sizes + 1) * torch.rand(count, generator=generator)).long()
    positions = torch.arange(batch.mel.shape[1])[None]
    somewhere = (positions >= starts[:, None]) & (positions < (starts + sizes)[:, None])
    second = (batch.joins > 0) & (torch.rand(count, generator=generator) < options.whole_second_clip)
    return _problem(
        batch,
        torch.where(second[:, None], _after_join(batch), somewhere),
        drawn_times(len(batch.mel), options.uniform_times, generator),
        generator,
        drops_text=choice < options.drop_both,
        drops_audio=choice < options.drop_both + options.drop_audio,
    )


def synthesis_problem(batch: SpeechBatch, time: float, generator: torch.Generator) -> FlowMatchingDraw:
    """Validation problem: predict the second clip of joined items at one time, with all conditions."""
    times = torch.full((len(batch.mel),), time)
    return _problem(batch, _after_join(batch), times, generator)


def velocity_field(model: DiT, ids: Tensor, problem: FlowMatchingDraw) -> Field:
    """Velocity at any states and times, under the conditions of ``problem``, which are prepared once."""
    return velocity_fields(model, ids, (problem,))


def velocity_fields(model: DiT, ids: Tensor, branches: Sequence[FlowMatchingDraw]) -> Field:
    """:func:`velocity_field` of each of ``branches`` in one pass: (branches · B, frames, bands), branch by branch."""
    mask = branches[0].mask
    frames = mask.shape[1]
    texts = [model.text_embed(ids, frames, one.drops_text, mask) for one in branches]
    rows = mask.repeat(len(branches), 1)
    constant = model.input_embed.constant(torch.cat([one.condition for one in branches]), torch.cat(texts), rows)
    rotary = model.rotary_embed.table(frames)

    def attend(index: int, entering: Tensor) -> Tensor:
        return model.block(index).attention(entering, rotary, rows)

    def velocity(state: Tensor, times: Tensor) -> Tensor:
        entered = model.input_embed(state, constant, rows)
        hidden, final = model.pass_layers(entered, times.repeat(len(branches), *[1] * (times.ndim - 1)), attend)
        if model.long_skip_connection is not None:
            hidden = model.long_skip_connection(torch.cat([hidden, entered], dim=-1))
        scale, shift = final.unbind(1)
        return model.proj_out(modulate_items(hidden, shift, scale))

    return velocity


def without_conditions(problem: Draw) -> Draw:
    """The same noised speech and times, without text and surrounding speech."""
    return replace(problem, condition=torch.zeros_like(problem.condition), drops_text=True)


def span_error(velocity: Tensor, target: Tensor, span: Tensor) -> Tensor:
    """Mean squared error over the span's frames, a float32 scalar."""
    return (velocity.float() - target)[span].square().mean()


def _problem(
    batch: SpeechBatch,
    span: Tensor,
    times: Tensor,
    generator: torch.Generator,
    drops_text: bool = False,
    drops_audio: bool = False,
) -> FlowMatchingDraw:
    noise = torch.randn(batch.mel.shape, generator=generator)
    weights = times[:, None, None]
    return FlowMatchingDraw(
        noised=(1 - weights) * noise + weights * batch.mel,
        condition=torch.zeros_like(batch.mel) if drops_audio else batch.mel.masked_fill(span[..., None], 0),
        target=batch.mel - noise,
        times=times,
        span=span,
        mask=batch.mask,
        drops_text=drops_text,
    )


def _after_join(batch: SpeechBatch) -> Tensor:
    return (torch.arange(batch.mel.shape[1])[None] >= batch.joins[:, None]) & batch.mask


@dataclass(frozen=True)
class LatentBatch:
    """Items of several lengths, padded at the end. An item is one clip, or two of one voice joined."""

    latents: Tensor
    """(B, n, latent), zero in the padding."""
    phones: Tensor
    """(B, phones) official numbers, 0 in the padding."""
    tones: Tensor
    """(B, phones)."""
    phones_of_frames: Tensor
    """(B, n · stride) index of the phone in each mel frame, from 1; 0 in the padding."""
    lengths: Tensor
    """(B,) latent frames of every item."""
    joins: Tensor
    """(B,) first latent frame of the second clip, 0 for a single clip."""

    @property
    def mask(self) -> Tensor:
        return _positions(self) < self.lengths[:, None]


LONGEST_BEGINNING = 0.5
"""Largest share of a single clip used as its prompt."""
UNIFORM_TIMES = 0.5
"""Share of uniform times; the others are warped towards the noise like sway sampling."""


@dataclass(frozen=True)
class LatentProblem:
    noised: Tensor
    """xₜ, (B, n, latent), zero in the prompt."""
    condition: Tensor
    """(B, n, latent), the prompt's latents; zero after it."""
    prompt: Tensor
    """(B, n), true in the prompt."""
    target: Tensor
    """x₁ − x₀, (B, n, latent)."""
    times: Tensor
    """(B,)."""
    mask: Tensor
    """(B, n), true within the items."""
    phones: Tensor
    tones: Tensor
    phones_of_frames: Tensor

    @property
    def span(self) -> Tensor:
        return self.mask & ~self.prompt


def draw_latent_problem(batch: LatentBatch, generator: torch.Generator) -> LatentProblem:
    """Draw the training problem of a step from one generator."""
    count = len(batch.latents)
    beginnings = (LONGEST_BEGINNING * torch.rand(count, generator=generator) * batch.lengths).long()
    ends = torch.where(batch.joins > 0, batch.joins, beginnings)
    # Two numbers per item are drawn for nothing: as when conditions were dropped here, which keeps the run of a seed.
    torch.rand(count, generator=generator)
    times = drawn_times(count, UNIFORM_TIMES, generator)
    torch.rand(count, generator=generator)
    return latent_problem(batch, ends, times, generator)


def latent_synthesis_problem(batch: LatentBatch, time: float, generator: torch.Generator) -> LatentProblem:
    """Validation problem: predict the second clip of joined items at one time."""
    return latent_problem(batch, batch.joins, torch.full((len(batch.latents),), time), generator)


def latent_problem(batch: LatentBatch, ends: Tensor, times: Tensor, generator: torch.Generator) -> LatentProblem:
    """Problem with prompts up to ``ends`` (B,) and all conditions."""
    noise = torch.randn(batch.latents.shape, generator=generator)
    prompt = _positions(batch) < ends[:, None]
    weights = times[:, None, None]
    return LatentProblem(
        noised=((1 - weights) * noise + weights * batch.latents).masked_fill(prompt[..., None], 0),
        condition=batch.latents.masked_fill(~prompt[..., None], 0),
        prompt=prompt,
        target=batch.latents - noise,
        times=times,
        mask=batch.mask,
        phones=batch.phones,
        tones=batch.tones,
        phones_of_frames=batch.phones_of_frames,
    )


def _positions(batch: LatentBatch) -> Tensor:
    return torch.arange(batch.latents.shape[1], device=batch.latents.device)[None]
