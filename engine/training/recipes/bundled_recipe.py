"""Common part of the recipes of bundled flow and masked models: batches of clips and of pairs of them, Muon and AdamW,
averaged weights, and what a checkpoint holds. See :class:`engine.training.session.Recipe`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from engine.training.batch_queue import BatchQueue, QueuedClip
from engine.training.corpora import Corpus
from engine.training.learner import Learner, LearningOptions
from engine.training.optimisers import LayerMatrices
from engine.training.schedule import AveragedModel, Network


@dataclass(frozen=True)
class BundledOptions(LearningOptions):
    """Options of all these recipes."""

    frames: int = 1_800
    """The model's frames of one step, padding included."""


Options = TypeVar("Options", bound=BundledOptions)
Clips = TypeVar("Clips", bound=QueuedClip)


class BundledRecipe(ABC, Generic[Options, Clips, Network]):
    """Trains ``model`` on ``clips``, as it sees those of ``corpus``."""

    name: ClassVar[str]
    term: ClassVar[str]
    """Name of its loss in the log."""

    def __init__(
        self,
        corpus: Corpus[Any],
        clips: Sequence[Clips],
        model: Network,
        layers: LayerMatrices,
        device: torch.device,
        options: Options,
    ) -> None:
        self.corpus, self.clips, self.device, self.options = corpus, clips, device, options
        self.model = model.to(device)
        self._learner = Learner.by(self.model, layers, options)
        self._queue = BatchQueue(clips, options.frames, options.joined_share, options.seed)
        self.generator = torch.Generator().manual_seed(options.seed)
        """Draws on the CPU, so that one seed gives the same run on every device."""

    @property
    def average(self) -> AveragedModel[Network]:
        """The weights that ship."""
        return self._learner.average

    @property
    def steps(self) -> int:
        """Steps made so far."""
        return self._learner.steps

    @abstractmethod
    def loss(self, items: list[list[Clips]]) -> Tensor:
        """The loss to go down, of a batch whose items are one clip, or two of one voice."""

    def describe(self) -> dict[str, Any]:
        return {
            "corpus": f"{self.corpus.source}, {len(self.clips)} clips, {self.corpus.seconds / 3600:.2f} h",
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "initial_weights": "random",
            "options": asdict(self.options),
        }

    def step(self, number: int, progress: float) -> dict[str, float]:
        options = self.options
        self._learner.start(options.scale(number, progress, options.warm_up, options.hold))
        loss = self.loss([[self.clips[one] for one in item] for item in self._queue.next()])
        return {self.term: self._learner.follow(loss, number)}

    def autocast(self) -> torch.autocast:
        """The precision of the passes."""
        return self.options.autocast(self.device)

    def state(self) -> dict[str, Any]:
        return {
            **self._learner.state(),
            "queue": self._queue.state(),
            "generator": self.generator.get_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._learner.restore(state)
        self._queue.restore(state["queue"])
        self.generator.set_state(state["generator"])
