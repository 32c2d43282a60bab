"""Interface of language models for the decoding loops: read tokens, and score the next.

Ids are local: codes from 0 on, then the ids that end speech.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from paretone.sampling.cache import KeyValueCache
from paretone.sampling.prefixes import Prefixes


class CausalReader(Protocol):
    """A causal transformer with a cache."""

    def __call__(self, embedded: Tensor, cache: KeyValueCache | None, positions: Tensor) -> Tensor:
        """(batch, n, hidden) after what ``cache`` holds to hidden states after the final norm, of the same shape."""

    def fill(self, embedded: Tensor, cache: KeyValueCache, positions: Tensor) -> None:
        """Only store keys and values for later tokens."""


class TokenScorer(Protocol):
    """See the module; :class:`paretone.models.families.token_model.TokenModel` is one."""

    @property
    def transformer(self) -> CausalReader: ...

    @property
    def codes(self) -> int:
        """Number of ids that can be spoken."""

    @property
    def prefixes(self) -> Prefixes | None:
        """Cache of prefixes of requests."""

    @property
    def rows(self) -> int:
        """Number of ids, including those that end speech."""

    def embed(self, ids: Tensor | Sequence[int]) -> Tensor:
        """Ids (…) to (…, hidden)."""

    def logits(self, hidden: Tensor) -> Tensor:
        """(…, hidden) to (…, rows)."""

    def cache(self, capacity: int, batch: int = 1) -> KeyValueCache:
        """An empty one for its transformer."""
