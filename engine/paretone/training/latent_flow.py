"""The training objective of MegaTTS 3: the latents after a prompt, by conditional flow matching.

Path and velocity are those of :mod:`paretone.training.flow_matching`. A prompt always comes first, and its latents are
given without noise; text is phones and the phone of every mel frame. Three branches are trained for guidance at
synthesis: prompt and text, text alone, neither. In all of them the model knows where the prompt is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paretone.models.megatts3.phones import NO_PHONE, NO_TONE
from paretone.training.flow_times import drawn_times
from paretone.training.moving import moved


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
    """(B, n · stride) the place of the phone that sounds in each mel frame, from one; 0 in the padding."""
    lengths: Tensor
    """(B,) latent frames of every item."""
    joins: Tensor
    """(B,) the latent frame at which a second clip begins, 0 if the item is one clip."""

    @property
    def mask(self) -> Tensor:
        """(B, n) true within the items."""
        return _positions(self) < self.lengths[:, None]


@dataclass(frozen=True)
class LatentFlowOptions:
    """Options for drawing prompts, times and branches."""

    unprompted: float = 0.5
    """Share of single clips without any prompt; the others have their own beginning for one."""
    longest_beginning: float = 0.5
    """The largest share of a single clip that serves as its prompt."""
    drop_prompt: float = 0.15
    """Share of items in the second branch: text, but not the prompt's latents."""
    drop_both: float = 0.12
    """Share of items in the third branch: neither text nor latents."""
    uniform_times: float = 0.5
    """Share of times that are uniform; the others are bent towards the noise as sway sampling bends them."""


@dataclass(frozen=True)
class LatentProblem:
    """One random training problem for a batch."""

    noised: Tensor
    """xₜ, (B, n, latent), zero in the prompt."""
    condition: Tensor
    """The prompt's latents, zero after it and where they are dropped; (B, n, latent)."""
    prompt: Tensor
    """(B, n) true in the prompt."""
    target: Tensor
    """x₁ − x₀, (B, n, latent)."""
    times: Tensor
    """(B,)."""
    mask: Tensor
    """(B, n) true within the items."""
    phones: Tensor
    tones: Tensor
    phones_of_frames: Tensor

    @property
    def span(self) -> Tensor:
        """(B, n) true where the model is scored."""
        return self.mask & ~self.prompt

    def to(self, device: torch.device) -> LatentProblem:
        return moved(self, device)


def draw_latent_problem(batch: LatentBatch, options: LatentFlowOptions, generator: torch.Generator) -> LatentProblem:
    """Everything random about a training step, from one generator."""
    count = len(batch.latents)
    beginnings = (options.longest_beginning * torch.rand(count, generator=generator) * batch.lengths).long()
    unprompted = torch.rand(count, generator=generator) < options.unprompted
    ends = torch.where(batch.joins > 0, batch.joins, beginnings.masked_fill(unprompted, 0))
    times = drawn_times(count, options.uniform_times, generator)
    choice = torch.rand(count, generator=generator)
    drops_text = choice < options.drop_both
    drops_latents = choice < options.drop_both + options.drop_prompt
    return _problem(batch, ends, times, drops_text, drops_latents, generator)


def latent_synthesis_problem(batch: LatentBatch, time: float, generator: torch.Generator) -> LatentProblem:
    """The problem of validation: the second clip of joined items is unknown, at one time, with all conditions."""
    count = len(batch.latents)
    nothing = torch.zeros(count, dtype=torch.bool)
    return _problem(batch, batch.joins, torch.full((count,), time), nothing, nothing, generator)


def _problem(
    batch: LatentBatch,
    ends: Tensor,
    times: Tensor,
    drops_text: Tensor,
    drops_latents: Tensor,
    generator: torch.Generator,
) -> LatentProblem:
    noise = torch.randn(batch.latents.shape, generator=generator)
    prompt = _positions(batch) < ends[:, None]
    weights = times[:, None, None]
    known = prompt & ~drops_latents[:, None]
    spoken = batch.phones > 0
    return LatentProblem(
        noised=((1 - weights) * noise + weights * batch.latents).masked_fill(prompt[..., None], 0),
        condition=batch.latents.masked_fill(~known[..., None], 0),
        prompt=prompt,
        target=batch.latents - noise,
        times=times,
        mask=batch.mask,
        phones=torch.where(drops_text[:, None] & spoken, NO_PHONE, batch.phones),
        tones=torch.where(drops_text[:, None] & spoken, NO_TONE, batch.tones),
        phones_of_frames=batch.phones_of_frames,
    )


def _positions(batch: LatentBatch) -> Tensor:
    return torch.arange(batch.latents.shape[1], device=batch.latents.device)[None]
