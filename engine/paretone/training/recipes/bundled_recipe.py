"""Common part of the recipes of bundled flow and masked models: batches of clips and of pairs of them. See
:class:`paretone.training.recipe.Recipe`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from paretone.training.batch_queue import BatchQueue, QueuedClip
from paretone.training.corpus import Corpus
from paretone.training.learner import Learner, LearningOptions
from paretone.training.learning_recipe import LearningRecipe
from paretone.training.optimisers import LayerMatrices
from paretone.training.schedule import Network, Rated


@dataclass(frozen=True)
class BundledOptions(LearningOptions):
    """Options of all these recipes."""

    frames: int = 1_800
    """The model's frames of one step, padding included."""


def described(corpus: Corpus[Any], clips: Sequence[object], model: nn.Module, options: Rated) -> dict[str, Any]:
    """Header of the log of a run that trains a model from random weights on the ``clips`` of a corpus."""
    return {
        "corpus": f"{corpus.source}, {len(clips)} clips, {corpus.seconds / 3600:.2f} h",
        "parameters": sum(one.numel() for one in model.parameters()),
        "initial_weights": "random",
        "options": asdict(options),
    }


Options = TypeVar("Options", bound=BundledOptions)
Clips = TypeVar("Clips", bound=QueuedClip)


class BundledRecipe(LearningRecipe[Options, Network], Generic[Options, Clips, Network]):
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
        super().__init__(Learner.by(model.to(device), layers, options), device, options)
        self.corpus, self.clips = corpus, clips
        self._queue = BatchQueue(clips, options.frames, options.joined_share, options.seed, self.prompt_frames)
        self.generator = torch.Generator().manual_seed(options.seed)
        """Draws on the CPU, so that one seed gives the same run on every device."""
        self.progress = 0.0
        """Share of the budget that is spent."""

    @property
    def prompt_frames(self) -> int | None:
        """Frames that the first clip of a pair counts for at most when batches are packed."""
        return None

    @abstractmethod
    def loss(self, items: list[list[Clips]]) -> Tensor:
        """The loss to go down, of a batch whose items are one clip, or two of one voice."""

    def describe(self) -> dict[str, Any]:
        return described(self.corpus, self.clips, self.model, self.options)

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor]]:
        self.progress = progress
        loss = self.loss([[self.clips[one] for one in item] for item in self._queue.next()])
        return loss, {self.term: loss.detach()}

    def autocast(self) -> torch.autocast:
        """The precision of the passes."""
        return self.options.autocast(self.device)

    def state(self) -> dict[str, Any]:
        return {
            **super().state(),
            "queue": self._queue.state(),
            "generator": self.generator.get_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._queue.restore(state["queue"])
        self.generator.set_state(state["generator"])
