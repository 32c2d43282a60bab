"""Base of trainings of speech language models: the network with the whole embedding table and the head's speech rows,
its losses, and batches. See :class:`paretone.training.session.Recipe`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.errors import TrainingError
from paretone.models.families.language_network import Parts, TensorNames
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.observer import may_stop
from paretone.sampling.tokens import TokenSampler
from paretone.training.batches import BatchQueue, held_out_pairs
from paretone.training.learner import LayerMatrices, Learner, LearningOptions, LearningRecipe, Network
from paretone.training.spoken_tokens import Collate, SpokenTokens, TokenBatch


@dataclass(frozen=True)
class Seen:
    """Outputs of a model on a batch, for comparison by the losses. Layers by their original number."""

    logits: Tensor
    """(n, V) at the predicting positions."""
    embedded: Tensor
    """(B, T, D) inputs of the first layer."""
    outputs: Mapping[int, Tensor] = field(default_factory=dict)
    """(B, T, D) by layer, before the final norm."""
    attention: Mapping[int, Tensor] = field(default_factory=dict)
    """(B, H, T, T) by layer, after the softmax."""
    hidden: Tensor = field(default_factory=lambda: torch.empty(0))
    """(B, T, D), after the final norm; logits are not computed where it is asked for."""


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of ``logits`` (n, V) to the spoken ids (n,)."""
    return F.cross_entropy(logits.float(), labels)


def divergence(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(p_T ‖ p_S) in nats, mean over positions; logits (n, V)."""
    return each_divergence(student, teacher).mean()


def each_divergence(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(p_T ‖ p_S) in nats per position (n,); logits (n, V)."""
    wanted, found = teacher.float().log_softmax(-1), student.float().log_softmax(-1)
    return (wanted.exp() * (wanted - found)).sum(-1)


def overlap(draft: Tensor, target: Tensor, sampler: TokenSampler) -> Tensor:
    """Σ min(p, q) of the final distributions of ``sampler``, without repetition; logits (n, V), result (n,)."""
    proposed, wanted = (sampler.probabilities(logits.float(), ()) for logits in (draft, target))
    return torch.minimum(proposed, wanted).sum(-1)


class TokenNetwork(nn.Module):
    """Predicts the next code or the end of speech, from sequences of one vocabulary."""

    def __init__(
        self,
        transformer: CausalTransformer,
        embedding: Tensor,
        head: Tensor,
        names: TensorNames,
        bias: Tensor | None = None,
    ) -> None:
        """``embedding`` (vocabulary, D), ``head`` (codes + stops, D) and ``bias`` (codes + stops,) are copied."""
        super().__init__()
        self.names, self.transformer = names, transformer
        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False)
        self.head = nn.Linear(head.shape[1], len(head), bias=bias is not None)
        self.head.weight = nn.Parameter(head.clone())
        if bias is not None:
            self.head.bias = nn.Parameter(bias.clone())

    @classmethod
    def read(cls, config: CausalConfig, tensors: Mapping[str, Tensor], names: TensorNames) -> TokenNetwork:
        """Network with a checkpoint's tensors in float32."""
        parts = names.parts({name: value.float() for name, value in tensors.items()})
        transformer = CausalTransformer(config)
        transformer.load_state_dict(parts.transformer)
        return cls(transformer, parts.embedding, parts.head, names, parts.bias)

    def kept(self, retained: Sequence[int]) -> TokenNetwork:
        """Copy with only the layers ``retained``."""
        pruned = copy.copy(self)
        pruned._modules = dict(self._modules)
        pruned.transformer = self.transformer.kept(retained)
        return copy.deepcopy(pruned)

    def forward(
        self,
        batch: TokenBatch,
        outputs: Sequence[int] = (),
        attention: Sequence[int] = (),
        skip: Sequence[int] = (),
        complete: bool = False,
    ) -> Seen:
        """Outputs of the model on ``batch``; ``outputs`` and ``attention``: layers to record, ``skip``: layers to
        skip; ``complete``: all hidden states in place of logits."""
        outputs_seen: dict[int, Tensor] = {}
        attention_seen: dict[int, Tensor] = {}

        def probe(layer: int, what: str, value: Tensor) -> None:
            if what == "output" and layer in outputs:
                outputs_seen[layer] = value
            elif what == "attention" and layer in attention:
                attention_seen[layer] = value

        embedded = batch.ids if batch.ids.is_floating_point() else self.embedding(batch.ids)
        hidden = self.transformer(
            embedded, positions=batch.positions, probe=probe, attention=bool(attention), skip=frozenset(skip)
        )
        logits = hidden.new_empty(0) if complete else self.head(hidden[batch.predicting])
        return Seen(logits, embedded, outputs_seen, attention_seen, hidden)

    @torch.no_grad()
    def take(self, tensors: Mapping[str, Tensor], retained: Sequence[int]) -> None:
        """Load layers and head of ``tensors``, by official names with layer numbers of ``retained``."""
        for place, layer in enumerate(retained):
            prefix = f"{self.names.layers}{layer}."
            inner = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
            if inner:
                self.transformer.layers[place].load_state_dict(inner)
        if self.names.head in tensors:
            self.head.weight.copy_(self.names.spoken(tensors[self.names.head]))

    def tensors(self, dtype: torch.dtype = torch.float16) -> dict[str, Tensor]:
        """Tensors by official names, as stored in files."""
        bias = None if self.head.bias is None else self.head.bias.detach()
        embedding, head = self.embedding.weight.detach(), self.head.weight.detach()
        named = self.names.tensors(Parts(self.transformer.state_dict(), embedding, head, bias))
        return {name: value.detach().to(dtype).contiguous() for name, value in named.items()}


@dataclass(frozen=True)
class TokenOptions(LearningOptions):
    positions: int = 1_600
    """Positions per step: text, speech and padding."""
    matrix_rate: float | None = 0.01
    other_rate: float = 1e-3
    warm_up: int = 20
    joined_share: float = 0.6
    average_decay: float = 0.995
    validation_items: int = 12


@dataclass(frozen=True)
class TokenData:
    training: tuple[SpokenTokens, ...]
    held_out: tuple[SpokenTokens, ...]
    origin: str = ""


class TokenRecipe(LearningRecipe[TokenOptions, Network], Generic[Network]):
    """Trains ``model``."""

    name: ClassVar[str]
    matrices: ClassVar[LayerMatrices] = LayerMatrices("layers.")
    """Parameters for Muon."""

    def __init__(
        self,
        model: Network,
        retained: Sequence[int],
        base: str,
        data: TokenData,
        collate: Collate,
        device: torch.device,
        options: TokenOptions,
    ) -> None:
        """``retained``: numbers of the layers of the initial checkpoint that ``model`` has, ``base``: its fingerprint;
        ``collate``: layout of batches for the model."""
        super().__init__(Learner.by(model.to(device), self.matrices, options), device, options)
        self.retained = tuple(retained)
        self.base, self.data, self.collate = base, data, collate
        self._queue = BatchQueue(data.training, options.positions // 2, options.joined_share, options.seed)

    # --- For subclasses -----------------------------------------------------------------------------------------------
    def losses(self, batch: TokenBatch) -> tuple[Tensor, dict[str, float]]:
        """Loss of ``batch``, and its terms to log."""
        raise NotImplementedError

    def figures(self, batch: TokenBatch) -> dict[str, Tensor]:
        """Validation figures of the averaged model, one value per predicting position of ``batch``."""
        raise NotImplementedError

    # --- The recipe ---------------------------------------------------------------------------------------------------
    def describe(self) -> dict[str, Any]:
        return {
            "utterances": len(self.data.training),
            "tokens": sum(one.frames for one in self.data.training),
            "origin": self.data.origin,
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "trained_parameters": sum(one.numel() for one in self.model.parameters() if one.requires_grad),
            "initial_weights": self.base,
            "options": asdict(self.options),
        }

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor | float]]:
        items = [[self.data.training[one] for one in item] for item in self._queue.next()]
        with self.options.autocast(self.device):
            loss, terms = self.losses(self.collate(items).to(self.device))
        return loss, {"loss": loss.detach(), **terms}

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """:meth:`figures` on held-out utterances, mean over positions."""
        found: dict[str, list[Tensor]] = {}
        for batch in self._validation_batches:
            may_stop()
            for name, values in self.figures(batch.to(self.device)).items():
                found.setdefault(name, []).append(values.float().cpu())
        return {name: float(torch.cat(values).mean()) for name, values in found.items()}

    @cached_property
    def _validation_batches(self) -> list[TokenBatch]:
        batches = held_out_pairs(self.data.held_out, self.options.validation_items, 6)
        return [self.collate(items) for items in batches]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "queue": self._queue.state(), "base": self.base, "retained": list(self.retained)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises :class:`TrainingError` if the checkpoint was started from other weights or has other layers."""
        if state["base"] != self.base or tuple(state["retained"]) != self.retained:
            raise TrainingError(
                "The run to resume was started from another checkpoint or keeps other layers; choose another folder, "
                "or resume it as it was started."
            )
        super().restore(state)
        self._queue.restore(state["queue"])


def listed(layers: Sequence[int]) -> str:
    return "[" + ",".join(map(str, layers)) + "]"
