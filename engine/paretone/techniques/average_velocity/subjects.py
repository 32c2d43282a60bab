"""What training asks of a kind of model: problems from its speech, and its velocity under their conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from paretone.setting.knobs import Values
from paretone.techniques.average_velocity.targets import Field
from paretone.training.batch_queue import BatchQueue
from paretone.training.optimisers import LayerMatrices


class Problem(Protocol):
    """A batch of speech with noise drawn for it: the state (1 − t)·noise + t·speech of every item at its time."""

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
        """(B, frames) true where the model is scored."""


def state_at(problem: Problem, times: Tensor) -> Tensor:
    """States of ``problem`` at other ``times`` (B,)."""
    return problem.noised + (times - problem.times)[:, None, None] * problem.target


Model = TypeVar("Model", bound=nn.Module)
AnyProblem = TypeVar("AnyProblem", bound=Problem)


class Subject(ABC, Generic[Model, AnyProblem]):
    """A model that is trained, and its speech. Everything that it draws is drawn on the CPU, so that one seed gives the
    same run on every device."""

    layers: LayerMatrices
    """What Muon trains of it."""
    speech: str
    """Its speech, in words."""

    def __init__(self, model: Model, queue: BatchQueue, seed: int) -> None:
        self.model = model
        self._queue = queue
        self.generator = torch.Generator().manual_seed(seed)

    def next(self, device: torch.device) -> AnyProblem:
        """The next problem."""
        return self.drawn(self._queue.next(), device)

    @abstractmethod
    def add_interval(self, model: Model) -> None:
        """Let a copy of the model take intervals, without effect until it has learnt."""

    @abstractmethod
    def drawn(self, items: list[list[int]], device: torch.device) -> AnyProblem:
        """A problem of the clips whose numbers each item holds; speech that is to be spoken comes after a prompt."""

    @abstractmethod
    def held_out(self, count: int, device: torch.device) -> Sequence[AnyProblem]:
        """About ``count`` items to validate on, the same every time."""

    @abstractmethod
    def field(self, model: Model, problem: AnyProblem) -> Field:
        """Velocity of ``model`` with all conditions of ``problem``, which are prepared once."""

    @abstractmethod
    def guided(self, model: Model, problem: AnyProblem, guidance: Values) -> Field:
        """The same under guidance."""

    @abstractmethod
    def official(self, weights: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
        """``weights`` of a model by their keys in the official layout."""

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"queue": self._queue.state(), "generator": self.generator.get_state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state`."""
        self._queue.restore(state["queue"])
        self.generator.set_state(state["generator"])
