"""Subjects of fine-tunings of flows: problems from the speech of a kind of model, and its velocity under their
conditions. Recipes set the targets.

Time runs from noise (0) to speech (1), and velocities are those of the flow, dz/dt = v(z, t).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from paretone.models.f5.dit import DiT
from paretone.models.files.trained_weights import PREFIX
from paretone.models.networks.diffusion import add_interval
from paretone.sampling.guidance import is_guided
from paretone.setting.knobs import Values
from paretone.training.batches import BatchQueue, QueuedClip, held_out_pairs, moved
from paretone.training.features import Examples, collate, may_join, with_short_prompts
from paretone.training.flow_matching import (
    LAYER_MATRICES,
    Field,
    FlowMatchingDraw,
    FlowMatchingOptions,
    SpeechBatch,
    draw_problem,
    synthesis_problem,
    velocity_field,
    velocity_fields,
    without_conditions,
)
from paretone.training.learner import LayerMatrices


class Problem(Protocol):
    """A batch of speech with noise: the state (1 − t)·noise + t·speech of every item at its time."""

    @property
    def noised(self) -> Tensor:
        """States, (B, frames, bands)."""

    @property
    def target(self) -> Tensor:
        """Speech − noise, (B, frames, bands)."""

    @property
    def times(self) -> Tensor:
        """(B,)."""

    @property
    def span(self) -> Tensor:
        """(B, frames), true at scored frames."""


def state_at(problem: Problem, times: Tensor) -> Tensor:
    return problem.noised + (times - problem.times)[:, None, None] * problem.target


Model = TypeVar("Model", bound=nn.Module)
AnyProblem = TypeVar("AnyProblem", bound=Problem)


class Subject(ABC, Generic[Model, AnyProblem]):
    """A model to train, and its speech."""

    layers: LayerMatrices
    """Weights that Muon trains."""
    objective: FlowMatchingOptions
    """What problems drop of their conditions, and their times."""
    speech: str

    def __init__(self, model: Model, queue: BatchQueue, seed: int) -> None:
        self.model, self.queue = model, queue
        self.generator = torch.Generator().manual_seed(seed)

    def next(self, device: torch.device) -> AnyProblem:
        return self.drawn(self.queue.next(), device)

    def add_interval(self, model: Any) -> None:
        """Add an embedding of intervals to ``model``, initially without effect."""
        add_interval(model)

    @abstractmethod
    def drawn(self, items: list[list[int]], device: torch.device) -> AnyProblem:
        """Problem of the clips whose numbers each item holds; the speech to predict follows a prompt."""

    @abstractmethod
    def held_out(self, count: int, device: torch.device, time: float = 0.0) -> Sequence[AnyProblem]:
        """About ``count`` validation items at ``time``, the same every time."""

    def bare(self, problem: AnyProblem) -> AnyProblem:
        """``problem`` without any condition, of subjects with one strength of guidance."""
        raise NotImplementedError

    @abstractmethod
    def field(self, model: Model, problem: AnyProblem) -> Field:
        """Velocity of ``model`` under all conditions of ``problem``, which are prepared once."""

    @abstractmethod
    def guided(self, model: Model, problem: AnyProblem, guidance: Values) -> Field:
        """Guided velocity of ``model``."""

    @abstractmethod
    def official(self, weights: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
        """``weights`` of a model by their keys in the official layout."""


JOINED = 0.9
"""Share of items with a prompt or two clips of one voice, if the speech allows it."""


class PromptedClip(QueuedClip, Protocol):
    @property
    def prompt(self) -> int:
        """Length of the prompt at the start of the clip."""


Clip = TypeVar("Clip", bound=PromptedClip)


class ClipSubject(Subject[Model, AnyProblem], Generic[Model, AnyProblem, Clip]):
    """A subject whose speech is clips in memory."""

    def __init__(self, model: Model, clips: Sequence[Clip], held_out: Sequence[Clip], frames: int, seed: int) -> None:
        self._clips, self._held_out = clips, held_out
        # Clips without a known voice cannot be joined; the model's own readings already have prompts.
        self._joins = all(one.voice and not one.prompt for one in clips)
        super().__init__(model, BatchQueue(clips, frames, JOINED if self._joins else 0.0, seed), seed)
        self.speech = f"{len(clips)} clips"

    def drawn(self, items: list[list[int]], device: torch.device) -> AnyProblem:
        clips = [[self._clips[one] for one in item] for item in items]
        return self.problem(clips, None, self.generator, device)

    def held_out(self, count: int, device: torch.device, time: float = 0.0) -> Sequence[AnyProblem]:
        generator = torch.Generator().manual_seed(7)
        batches = held_out_pairs(self._held_out, count, 8, self._joins)
        return [self.problem(items, time, generator, device) for items in batches]

    @abstractmethod
    def problem(
        self, items: Sequence[Sequence[Clip]], time: float | None, generator: torch.Generator, device: torch.device
    ) -> AnyProblem:
        """Problem of items of one clip, or two joined clips of one voice, at ``time`` or at drawn times."""


SHORTEST_PROMPT, LONGEST_PROMPT = 70, 350
"""Mel frames of a recording that serves as a prompt: prompts cost time and contribute nothing to the loss."""
OBJECTIVE = FlowMatchingOptions(drop_audio=0.0, drop_both=0.0, whole_second_clip=1.0)


@dataclass(frozen=True)
class F5Problem(FlowMatchingDraw):
    ids: Tensor


class F5Subject(Subject[DiT, F5Problem]):
    layers = LAYER_MATRICES

    def __init__(
        self,
        model: DiT,
        examples: Examples,
        frames: int,
        seed: int,
        objective: FlowMatchingOptions | None = None,
        joined: float = JOINED,
    ) -> None:
        """``joined`` is the share of items with two recordings of one voice; the first is cut to a short prompt, unless
        there is an ``objective``."""
        self._examples, self._joins = examples, may_join(examples.training)
        self._cuts, self.objective = objective is None, objective or OBJECTIVE
        prompt = (round(math.sqrt(SHORTEST_PROMPT * LONGEST_PROMPT)),) if self._cuts else ()
        queue = BatchQueue(examples.training, frames, joined if self._joins else 0.0, seed, *prompt)
        super().__init__(model, queue, seed)
        self.speech = examples.described

    def drawn(self, items: list[list[int]], device: torch.device) -> F5Problem:
        clips = [[self._examples.training[one] for one in item] for item in items]
        if self._cuts:
            batch = with_short_prompts(clips, SHORTEST_PROMPT, LONGEST_PROMPT, self.generator)
        else:
            batch = collate(clips)
        return _on(device, batch, draw_problem(batch, self.objective, self.generator))

    def held_out(self, count: int, device: torch.device, time: float = 0.0) -> Sequence[F5Problem]:
        generator = torch.Generator().manual_seed(7)
        held_out = self._examples.held_out
        batches = [collate(items) for items in held_out_pairs(held_out, count, 8, may_join(held_out))]
        return [_on(device, batch, synthesis_problem(batch, time, generator)) for batch in batches]

    def bare(self, problem: F5Problem) -> F5Problem:
        return without_conditions(problem)

    def field(self, model: DiT, problem: F5Problem) -> Field:
        return velocity_field(model, problem.ids, problem)

    def guided(self, model: DiT, problem: F5Problem, guidance: Values) -> Field:
        strength = float(guidance["guidance"])
        if not is_guided(strength):
            return self.field(model, problem)
        branches = velocity_fields(model, problem.ids, (problem, self.bare(problem)))

        def velocity(state: Tensor, times: Tensor) -> Tensor:
            learnt, unlearnt = branches(state, times).float().chunk(2)
            return learnt + strength * (learnt - unlearnt)

        return velocity

    def official(self, weights: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
        named = {PREFIX + name: value for name, value in weights.items()}
        return named | {"initted": torch.tensor(True), "step": torch.tensor(steps)}


def _on(device: torch.device, batch: SpeechBatch, draw: FlowMatchingDraw) -> F5Problem:
    return moved(F5Problem(**vars(draw), ids=batch.ids), device)
