"""Key-value cache of a causal transformer, in memory that is allocated once.

Rows are never moved: forgetting tokens only reduces their number (:meth:`KeyValueCache.crop`), so that removing
rejected tokens costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class KeyValueCache:
    """Room for ``capacity`` tokens in each of ``layers`` layers of ``heads`` key/value heads."""

    def __init__(
        self,
        layers: int,
        heads: int,
        capacity: int,
        head_width: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        batch: int = 1,
    ) -> None:
        self.capacity = capacity
        self.length = 0
        """Number of valid tokens."""
        # One block of memory, so that one copy writes keys and values; each head's are contiguous, as they are read.
        self._memory = torch.empty(layers, batch, 2 * heads, capacity, head_width, device=device, dtype=dtype)
        self._keys, self._values = self._memory.chunk(2, dim=2)

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write ``keys`` and ``values``, (batch, heads, tokens, head_width), after the valid ones, and return all up to
        there, (batch, heads, length + tokens, head_width). They are valid after :meth:`advance`.

        Raises :class:`ValueError` if there is no room for them.
        """
        tokens = keys.shape[2]
        end = self._end(tokens)
        all_keys, all_values = self._keys[layer], self._values[layer]
        all_keys.narrow(2, self.length, tokens).copy_(keys)
        all_values.narrow(2, self.length, tokens).copy_(values)
        return all_keys.narrow(2, 0, end), all_values.narrow(2, 0, end)

    def first(self, tokens: int) -> tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]]:
        """For every layer: where keys and values belong, (batch, tokens, 2 · heads, head_width), keys first; and all
        keys and all values, (batch, heads, tokens, head_width): of the first ``tokens`` places, valid or not."""
        memory = self._memory.narrow(3, 0, tokens).transpose(2, 3).unbind()
        keys, values = (one.narrow(3, 0, tokens).unbind() for one in (self._keys, self._values))
        return memory, keys, values

    def clear_memory(self) -> None:
        """Zero everything that was not written."""
        self._memory.zero_()

    def windows(self, tokens: int) -> Sequence[tuple[Tensor, Tensor, Tensor]]:
        """For every layer: where keys and values of the next ``tokens`` belong, (batch, tokens, 2 · heads, head_width),
        keys first; and all keys and all values up to there, as :meth:`extend` returns them.

        Raises :class:`ValueError` if there is no room for them.
        """
        end = self._end(tokens)
        places = self._memory.narrow(3, self.length, tokens).transpose(2, 3).unbind()
        keys, values = (one.narrow(3, 0, end).unbind() for one in (self._keys, self._values))
        return list(zip(places, keys, values, strict=True))

    def kept(self) -> Tensor:
        """A copy of the valid part, for :meth:`restore`."""
        return self._memory.narrow(3, 0, self.length).clone()

    def restore(self, kept: Tensor) -> None:
        """Restore a copy by :meth:`kept` of a cache with the same layers, heads and batch."""
        self.length = 0
        tokens = kept.shape[3]
        self._memory.narrow(3, 0, self._end(tokens)).copy_(kept)
        self.length = tokens

    def _end(self, tokens: int) -> int:
        end = self.length + tokens
        if end > self.capacity:
            raise ValueError(f"{end} tokens do not fit into a cache of {self.capacity}.")
        return end

    def advance(self, tokens: int) -> None:
        """Make ``tokens`` more valid, which every layer has written."""
        if not 0 <= tokens <= self.capacity - self.length:
            raise ValueError(f"{tokens} tokens cannot follow {self.length} in a cache of {self.capacity}.")
        self.length += tokens

    def crop(self, length: int) -> None:
        """Keep only the first ``length`` tokens."""
        if not 0 <= length <= self.length:
            raise ValueError(f"A cache of {self.length} tokens cannot be cropped to {length}.")
        self.length = length


MOST_KEPT = 4
"""Beginnings that are remembered: of as many voices."""


@dataclass(frozen=True)
class _Beginning:
    embedded: Tensor
    positions: Tensor
    kept: Tensor

    def is_of(self, embedded: Tensor, positions: Tensor) -> bool:
        same = self.embedded.shape == embedded.shape
        return same and torch.equal(self.positions, positions) and torch.equal(self.embedded, embedded)


class Prefixes:
    """Remembers, for one model whose weights never change, the keys and values of the beginnings used last: those of a
    voice do not depend on the text that follows.

    A request says how much of its beginning others share (:attr:`paretone.sampling.autoregressive.Request.shared`).
    That much is read in a separate pass, whether it is remembered or not, so that the same request gives the same bits
    whatever was spoken before it.
    """

    def __init__(self) -> None:
        self._beginnings: list[_Beginning] = []

    def __len__(self) -> int:
        return len(self._beginnings)

    def restore(self, cache: KeyValueCache, embedded: Tensor, positions: Tensor) -> bool:
        """Let the empty ``cache`` hold ``embedded`` (1, tokens, hidden) at ``positions`` (tokens,) and return true, if
        that was read before."""
        for place, one in enumerate(self._beginnings):
            if one.is_of(embedded, positions):
                cache.restore(one.kept)
                self._beginnings.append(self._beginnings.pop(place))
                return True
        return False

    def remember(self, cache: KeyValueCache, embedded: Tensor, positions: Tensor) -> None:
        self._beginnings.append(_Beginning(embedded.clone(), positions.clone(), cache.kept()))
        del self._beginnings[:-MOST_KEPT]


class CausalReader(Protocol):
    def __call__(self, embedded: Tensor, cache: KeyValueCache | None, positions: Tensor) -> Tensor:
        """(batch, n, hidden) after what ``cache`` holds to hidden states after the final norm, of the same shape."""

    def fill(self, embedded: Tensor, cache: KeyValueCache, positions: Tensor) -> None:
        """Only store keys and values for later tokens."""


class TokenScorer(Protocol):
    """A language model for the decoding loops: it reads tokens, and scores the next. Ids are local: codes from 0 on,
    then the ids that end speech. :class:`paretone.models.families.language_network.TokenModel` is one."""

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
