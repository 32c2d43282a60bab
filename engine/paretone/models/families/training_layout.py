"""Layout of a language model for training drafts and students: tensors by their official names, and training
sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

IGNORED = -100
"""Label of a position that predicts nothing."""


@dataclass(frozen=True)
class Parts:
    transformer: Mapping[str, Tensor] = field(repr=False)
    """By the names of :class:`paretone.models.networks.causal.CausalTransformer`."""
    embedding: Tensor = field(repr=False)
    """(vocabulary, hidden): all that sequences are embedded with, in one table."""
    head: Tensor = field(repr=False)
    """(codes + stops, hidden): what can be spoken."""
    bias: Tensor | None = field(default=None, repr=False)
    """(codes + stops,)."""


class TensorNames(Protocol):
    @property
    def layers(self) -> str:
        """Prefix of a layer's number."""

    @property
    def head(self) -> str:
        """The table of scores."""

    def parts(self, tensors: Mapping[str, Tensor]) -> Parts:
        """A checkpoint's tensors, which are not copied, by what they are."""

    def tensors(self, parts: Parts) -> dict[str, Tensor]:
        """The way back: a checkpoint's tensors by their names."""

    def spoken(self, head: Tensor) -> Tensor:
        """The rows of an official table of scores that can be spoken, (codes + stops, hidden)."""


@dataclass(frozen=True)
class HuggingFaceNames:
    """Those of a causal model on the Hugging Face Hub, of whose vocabulary the ids ``rows`` (codes + stops,) can be
    spoken. Rows of the head that cannot are zero if it is written."""

    rows: Tensor = field(repr=False)
    layers: str = "model.layers."
    head: str = "lm_head.weight"
    embedding: str = "model.embed_tokens.weight"
    body: str = "model."

    def parts(self, tensors: Mapping[str, Tensor]) -> Parts:
        """As :class:`TensorNames` says; without a separate head, the embedding is the head."""
        tables = self.embedding, self.head
        body = {name.removeprefix(self.body): value for name, value in tensors.items() if name not in tables}
        embedding = tensors[self.embedding]
        return Parts(body, embedding, self.spoken(tensors.get(self.head, embedding)))

    def tensors(self, parts: Parts) -> dict[str, Tensor]:
        head = torch.zeros_like(parts.embedding)
        head[self.rows.to(head.device)] = parts.head
        named = {self.body + name: value for name, value in parts.transformer.items()}
        return named | {self.embedding: parts.embedding, self.head: head}

    def spoken(self, head: Tensor) -> Tensor:
        return head[self.rows.to(head.device)]


@dataclass(frozen=True)
class TrainingRow:
    """One training sequence of a model whose positions are counted from its beginning."""

    ids: tuple[int, ...]
    """Ids in the vocabulary of :attr:`Parts.embedding`."""
    labels: tuple[int, ...]
    """At each place the row of the head that comes next, :data:`IGNORED` if
    nothing is predicted."""
