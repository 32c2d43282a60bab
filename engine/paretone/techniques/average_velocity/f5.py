"""F5-TTS as a subject of the training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paretone.models.f5.dit import DiT
from paretone.models.files.trained_weights import PREFIX
from paretone.models.networks.diffusion import add_interval
from paretone.sampling.guidance import is_guided
from paretone.setting.knobs import Values
from paretone.techniques.average_velocity.subjects import Field, Subject
from paretone.training.batches import BatchQueue, moved
from paretone.training.features import Example, Examples, collate, may_join, validation_batches
from paretone.training.flow_matching import (
    LAYER_MATRICES,
    FlowMatchingDraw,
    FlowMatchingOptions,
    SpeechBatch,
    draw_problem,
    synthesis_problem,
    velocity_field,
    velocity_fields,
    without_conditions,
)

SHORTEST_PROMPT, LONGEST_PROMPT = 70, 350
"""Mel frames that are seen of the recording that is a prompt: prompts cost time, and nothing is learnt in them."""
JOINED = 0.9
"""Share of the items that have a prompt, where the model can read those."""
OBJECTIVE = FlowMatchingOptions(drop_audio=0.0, drop_both=0.0, whole_second_clip=1.0)


@dataclass(frozen=True)
class F5Problem:
    """A draw with its text."""

    draw: FlowMatchingDraw
    ids: Tensor

    @property
    def noised(self) -> Tensor:
        return self.draw.noised

    @property
    def target(self) -> Tensor:
        return self.draw.target

    @property
    def times(self) -> Tensor:
        return self.draw.times

    @property
    def span(self) -> Tensor:
        return self.draw.span


class F5Subject(Subject[DiT, F5Problem]):
    """An F5-TTS with recordings, or with natural speech."""

    layers = LAYER_MATRICES

    def __init__(self, model: DiT, examples: Examples, frames: int, seed: int) -> None:
        self._examples, self._joins = examples, may_join(examples.training)
        prompt = round(math.sqrt(SHORTEST_PROMPT * LONGEST_PROMPT))
        queue = BatchQueue(examples.training, frames, JOINED if self._joins else 0.0, seed, prompt)
        super().__init__(model, queue, seed)
        self.speech = f"{len(examples.training)} recordings, {examples.seconds / 3600:.2f} h"

    def add_interval(self, model: DiT) -> None:
        add_interval(model)

    def drawn(self, items: list[list[int]], device: torch.device) -> F5Problem:
        share = float(torch.rand((), generator=self.generator))
        count = round(SHORTEST_PROMPT * (LONGEST_PROMPT / SHORTEST_PROMPT) ** share)
        clips = [[self._examples.training[one] for one in item] for item in items]
        batch = collate([[self._excerpt(one[0], count), *one[1:]] if len(one) > 1 else one for one in clips])
        return _on(device, batch, draw_problem(batch, OBJECTIVE, self.generator))

    def held_out(self, count: int, device: torch.device) -> Sequence[F5Problem]:
        generator = torch.Generator().manual_seed(7)
        batches = validation_batches(self._examples.held_out, count)
        return [_on(device, batch, synthesis_problem(batch, 0.0, generator)) for batch in batches]

    def _excerpt(self, clip: Example, count: int) -> Example:
        """As many frames of ``clip``, or all of it."""
        first = int(float(torch.rand((), generator=self.generator)) * max(clip.frames - count + 1, 1))
        part = slice(first, first + count)
        return replace(clip, ids=clip.ids[part], mel=clip.mel[part])

    def field(self, model: DiT, problem: F5Problem) -> Field:
        return velocity_field(model, problem.ids, problem.draw)

    def guided(self, model: DiT, problem: F5Problem, guidance: Values) -> Field:
        strength = float(guidance["guidance"])
        if not is_guided(strength):
            return self.field(model, problem)
        branches = velocity_fields(model, problem.ids, (problem.draw, without_conditions(problem.draw)))

        def velocity(state: Tensor, times: Tensor) -> Tensor:
            learnt, unlearnt = branches(state, times).float().chunk(2)
            return learnt + strength * (learnt - unlearnt)

        return velocity

    def official(self, weights: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
        named = {PREFIX + name: value for name, value in weights.items()}
        return named | {"initted": torch.tensor(True), "step": torch.tensor(steps)}


def _on(device: torch.device, batch: SpeechBatch, draw: FlowMatchingDraw) -> F5Problem:
    return F5Problem(moved(draw, device), batch.ids.to(device))
