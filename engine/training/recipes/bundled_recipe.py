"""What the recipes of bundled models that fill something in have in common: batches of clips and of pairs of them, Muon
and AdamW, averaged weights, and what a checkpoint holds. See :class:`engine.training.session.Recipe`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from engine.training.batch_queue import BatchQueue, Spoken
from engine.training.corpora import Corpus
from engine.training.optimisers import LayerMatrices, MuonAndAdamW, Rates
from engine.training.schedule import AveragedModel, Rated
from engine.training.session import require_finite


@dataclass(frozen=True)
class BundledOptions(Rated):
    """What a run of any of these recipes can change."""

    frames: int = 1_800
    """The model's frames of one step, padding included."""
    matrix_rate: float = 0.02
    """Learning rate of Muon, for the matrices of the layers."""
    other_rate: float = 1.5e-3
    """Learning rate of AdamW, for everything else."""
    warm_up: int = 100
    hold: float = 0.3
    joined_share: float = 0.5
    """Share of the items that are two clips of one voice: a prompt and what is said after it."""
    average_decay: float = 0.999
    half_precision: bool = False
    """Forward pass, backward pass and Muon's iteration in bfloat16; weights and their updates stay in float32."""
    validation_items: int = 24
    seed: int = 1


Options = TypeVar("Options", bound=BundledOptions)
Clips = TypeVar("Clips", bound=Spoken)


class BundledRecipe(ABC, Generic[Options, Clips]):
    """Trains ``model`` on ``clips``, as it sees those of ``corpus``."""

    name: ClassVar[str]
    term: ClassVar[str]
    """What its loss is called in the log."""

    def __init__(
        self,
        corpus: Corpus,
        clips: Sequence[Clips],
        model: nn.Module,
        layers: LayerMatrices,
        device: torch.device,
        options: Options,
    ) -> None:
        self.corpus, self.clips, self.device, self.options = corpus, clips, device, options
        self.model = model.to(device)
        self.average = AveragedModel(self.model, options.average_decay)
        rates = Rates(options.matrix_rate, options.other_rate)
        self._optimisers = MuonAndAdamW(self.model, layers, rates, half_precision=options.half_precision)
        self._queue = BatchQueue(clips, options.frames, options.joined_share, options.seed)
        self.generator = torch.Generator().manual_seed(options.seed)
        """Draws on the processor, so that one seed means one run whatever the device."""
        self.steps = 0

    @abstractmethod
    def loss(self, items: list[list[Clips]]) -> Tensor:
        """The loss to go down, of a batch whose items are one clip, or two of one voice."""

    def describe(self) -> dict[str, Any]:
        return {
            "corpus": f"flite, {len(self.clips)} clips, {self.corpus.seconds / 3600:.2f} h",
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "initial_weights": "random",
            "options": asdict(self.options),
        }

    def step(self, number: int, progress: float) -> dict[str, float]:
        options = self.options
        self._optimisers.start(options.scale(number, progress, options.warm_up, options.hold))
        loss = self.loss([[self.clips[one] for one in item] for item in self._queue.next()])
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        require_finite(float(loss.detach() + norm), "loss or its gradient", number)
        self._optimisers.step()
        self.average.update(self.model, number)
        self.steps = number
        return {self.term: float(loss.detach())}

    def autocast(self) -> torch.autocast:
        """In which the passes are made."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.half_precision)

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "average": self.average.module.state_dict(),
            "optimisers": self._optimisers.state(),
            "queue": self._queue.state(),
            "generator": self.generator.get_state(),
            "steps": self.steps,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.average.module.load_state_dict(state["average"])
        self._optimisers.restore(state["optimisers"])
        self._queue.restore(state["queue"])
        self.generator.set_state(state["generator"])
        self.steps = state.get("steps", 0)  # Earlier checkpoints of megatts3-mini lack it.
