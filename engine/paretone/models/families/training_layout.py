"""Tensors and training sequences of a language model, for training drafts and students."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

IGNORED = -100
"""Label of a position that is not predicted."""


@dataclass(frozen=True)
class Parts:
    transformer: Mapping[str, Tensor] = field(repr=False)
    """Under the names of :class:`paretone.models.networks.causal.CausalTransformer`."""
    embedding: Tensor = field(repr=False)
    """(vocabulary, hidden): the single table that embeds sequences."""
    head: Tensor = field(repr=False)
    """(codes + stops, hidden)."""
    bias: Tensor | None = field(default=None, repr=False)
    """(codes + stops,)."""


class TensorNames(Protocol):
    @property
    def layers(self) -> str:
        """Prefix of a layer's number."""

    @property
    def head(self) -> str:
        """Name of the head's weight."""

    def parts(self, tensors: Mapping[str, Tensor]) -> Parts:
        """Group a checkpoint's tensors, without copying."""

    def tensors(self, parts: Parts) -> dict[str, Tensor]:
        """Inverse of :meth:`parts`: a checkpoint's tensors by name."""

    def spoken(self, head: Tensor) -> Tensor:
        """Select the rows of an official head that can be spoken, (codes + stops, hidden)."""


@dataclass(frozen=True)
class HuggingFaceNames:
    """Names of a causal model on the Hugging Face Hub, whose vocabulary has the speech ids ``rows`` (codes + stops,).
    When written, all other rows of the head are zero."""

    rows: Tensor = field(repr=False)
    layers: str = "model.layers."
    head: str = "lm_head.weight"
    embedding: str = "model.embed_tokens.weight"
    body: str = "model."

    def parts(self, tensors: Mapping[str, Tensor]) -> Parts:
        """Group the tensors; without a separate head, the embedding is the head."""
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
    """Next row of the head at each position; :data:`IGNORED` if not predicted."""
