"""MegaTTS 3 as a subject of the training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from paretone.models.megatts3.dit import MegaDiT
from paretone.models.networks.diffusion import add_interval
from paretone.sampling.guidance import branch_weights
from paretone.setting.knobs import Values
from paretone.techniques.average_velocity.subjects import Subject
from paretone.techniques.average_velocity.targets import Field
from paretone.training.batch_queue import BatchQueue, held_out_pairs
from paretone.training.latent_flow import (
    LatentFlowOptions,
    LatentProblem,
    draw_latent_problem,
    latent_synthesis_problem,
)
from paretone.training.recipes.mega_recipe import LAYER_MATRICES, LatentClip, collate_latents

JOINED = 0.9
OBJECTIVE = LatentFlowOptions(unprompted=0.0, drop_prompt=0.0, drop_both=0.0)


class MegaSubject(Subject[MegaDiT, LatentProblem]):
    """A MegaTTS 3 with clips as it sees them."""

    layers = LAYER_MATRICES

    def __init__(
        self, model: MegaDiT, clips: Sequence[LatentClip], held_out: Sequence[LatentClip], frames: int, seed: int
    ) -> None:
        self._clips, self._held_out = clips, held_out
        # Clips of no known voice cannot be joined, and those that the model said itself have their prompts already.
        self._joins = all(one.voice and not one.prompt for one in clips)
        super().__init__(model, BatchQueue(clips, frames, JOINED if self._joins else 0.0, seed), seed)
        self.speech = f"{len(clips)} clips"

    def add_interval(self, model: MegaDiT) -> None:
        add_interval(model)

    def drawn(self, items: list[list[int]], device: torch.device) -> LatentProblem:
        batch = collate_latents([[self._clips[one] for one in item] for item in items])
        return draw_latent_problem(batch, OBJECTIVE, self.generator).to(device)

    def held_out(self, count: int, device: torch.device) -> Sequence[LatentProblem]:
        generator = torch.Generator().manual_seed(7)
        batches = [collate_latents(items) for items in held_out_pairs(self._held_out, count, 8, self._joins)]
        return [latent_synthesis_problem(batch, 0.0, generator).to(device) for batch in batches]

    def field(self, model: MegaDiT, problem: LatentProblem) -> Field:
        return _fields(model, (problem,))

    def guided(self, model: MegaDiT, problem: LatentProblem, guidance: Values) -> Field:
        weights = branch_weights(float(guidance["intelligibility"]), float(guidance["similarity"]))
        without_prompt = replace(problem, condition=torch.zeros_like(problem.condition))
        phones, tones = model.unknown(problem.phones, problem.tones)
        branches = (problem, without_prompt, replace(without_prompt, phones=phones, tones=tones))
        parts = [(weight, one) for weight, one in zip(weights, branches, strict=True) if weight]
        every = _fields(model, [one for _, one in parts])

        def velocity(state: Tensor, times: Tensor) -> Tensor:
            found = every(state, times).float().chunk(len(parts))
            return torch.stack([weight * one for (weight, _), one in zip(parts, found, strict=True)]).sum(0)

        return velocity

    def official(self, weights: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
        return dict(weights)


def _fields(model: MegaDiT, branches: Sequence[LatentProblem]) -> Field:
    """Velocity under the conditions of each of ``branches``, one speech that is known in several ways: all items of a
    branch, then of the next, in one pass."""

    def rows(part: Callable[[LatentProblem], Tensor]) -> Tensor:
        return torch.cat([part(one) for one in branches])

    prompt, mask = rows(lambda one: one.prompt), rows(lambda one: one.mask)
    with _attention(mask):
        known = model.conditions(
            rows(lambda one: one.condition),
            prompt,
            rows(lambda one: one.phones),
            rows(lambda one: one.tones),
            rows(lambda one: one.phones_of_frames),
            mask,
        )

    def velocity(state: Tensor, times: Tensor) -> Tensor:
        count = len(branches)
        with _attention(state):
            every = times.repeat(count, *[1] * (times.ndim - 1))
            return model.follow(state.repeat(count, 1, 1), prompt, known, every, mask)

    return velocity


def _attention(state: Tensor) -> AbstractContextManager[None]:
    """On processors as in the training of the bundled model: items are short, and the fused backward pass costs
    more there. Graphics cards choose."""
    return sdpa_kernel(SDPBackend.MATH) if state.device.type == "cpu" else nullcontext()
