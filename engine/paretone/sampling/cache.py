"""Key-value cache of a causal transformer, in memory allocated once.

Rows are never moved: dropping tokens only reduces their number (:meth:`KeyValueCache.crop`), which costs nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from paretone.last_used import VOICES
from paretone.sampling.tokens import Truncation

SPARE = 16
"""Additional tokens in a cache's memory: machine code reads keys in groups of up to 16, which may end later."""


class KeyValueCache:
    """Memory for ``capacity`` tokens in each of ``layers`` layers with ``heads`` key/value heads."""

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
        self.prefix: Tensor | None = None
        """Copy of its first tokens, the same object for all caches that began with them."""
        # One block of memory, so that one copy writes keys and values; each head's are contiguous for reading.
        shape = layers, batch, 2 * heads, capacity, head_width
        memory = torch.empty(math.prod(shape) + SPARE * head_width, device=device, dtype=dtype)
        self._memory = memory[: math.prod(shape)].view(shape)
        self._keys, self._values = self._memory.chunk(2, dim=2)

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write ``keys`` and ``values``, (batch, heads, tokens, head_width), after the valid tokens and return all keys
        and values up to there, (batch, heads, length + tokens, head_width). :meth:`advance` makes them valid. Raises
        :class:`ValueError` beyond the capacity."""
        tokens = keys.shape[2]
        end = self._end(tokens)
        all_keys, all_values = self._keys[layer], self._values[layer]
        all_keys.narrow(2, self.length, tokens).copy_(keys)
        all_values.narrow(2, self.length, tokens).copy_(values)
        return all_keys.narrow(2, 0, end), all_values.narrow(2, 0, end)

    def first(self, tokens: int) -> tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]]:
        """Views of the first ``tokens`` places of every layer, valid or not: the place to write keys and values,
        (batch, tokens, 2 · heads, head_width), keys first; all keys and all values, (batch, heads, tokens,
        head_width)."""
        memory = self._memory.narrow(3, 0, tokens).transpose(2, 3).unbind()
        keys, values = (one.narrow(3, 0, tokens).unbind() for one in (self._keys, self._values))
        return memory, keys, values

    def clear_memory(self) -> None:
        self._memory.zero_()

    def windows(self, tokens: int) -> Sequence[tuple[Tensor, Tensor, Tensor]]:
        """Views per layer: the place to write keys and values of the next ``tokens``, (batch, tokens, 2 · heads,
        head_width), keys first; and all keys and values up to there, as returned by :meth:`extend`. Raises
        :class:`ValueError` beyond the capacity."""
        end = self._end(tokens)
        places = self._memory.narrow(3, self.length, tokens).transpose(2, 3).unbind()
        keys, values = (one.narrow(3, 0, end).unbind() for one in (self._keys, self._values))
        return list(zip(places, keys, values, strict=True))

    def memory_for(self, tokens: int) -> Tensor:
        """The whole memory, (layers, batch, 2 · heads, capacity, head_width), keys first, with room for the next
        ``tokens``. Raises :class:`ValueError` beyond the capacity."""
        self._end(tokens)
        return self._memory

    def kept(self) -> Tensor:
        """Copy of the valid part, for :meth:`restore`."""
        return self._memory.narrow(3, 0, self.length).clone()

    def restore(self, kept: Tensor) -> None:
        """Restore a copy made by :meth:`kept` of a cache with the same layers, heads and batch."""
        self.length = 0
        tokens = kept.shape[3]
        self._memory.narrow(3, 0, self._end(tokens)).copy_(kept)
        self.length, self.prefix = tokens, kept

    def _end(self, tokens: int) -> int:
        end = self.length + tokens
        if end > self.capacity:
            raise ValueError(f"{end} tokens do not fit into a cache of {self.capacity}.")
        return end

    def advance(self, tokens: int) -> None:
        """Mark ``tokens`` more as valid, after every layer has written them."""
        if not 0 <= tokens <= self.capacity - self.length:
            raise ValueError(f"{tokens} tokens cannot follow {self.length} in a cache of {self.capacity}.")
        self.length += tokens

    def crop(self, length: int) -> None:
        """Keep only the first ``length`` tokens."""
        if not 0 <= length <= self.length:
            raise ValueError(f"A cache of {self.length} tokens cannot be cropped to {length}.")
        self.length = length
        if self.prefix is not None and length < self.prefix.shape[3]:
            self.prefix = None


@dataclass(frozen=True)
class _Beginning:
    embedded: Tensor
    positions: Tensor
    kept: Tensor

    def is_of(self, embedded: Tensor, positions: Tensor) -> bool:
        same = self.embedded.shape == embedded.shape
        return same and torch.equal(self.positions, positions) and torch.equal(self.embedded, embedded)


class Prefixes:
    """Keys and values of the last used prefixes of one model with constant weights: a voice's prefix does not depend on
    the text that follows. Requests declare the length of their shared prefix
    (:attr:`paretone.sampling.autoregressive.Request.shared`). It is always read in a separate pass, cached or not, so
    that equal requests give equal bits whatever was spoken before."""

    def __init__(self) -> None:
        self._beginnings: list[_Beginning] = []
        self.one = threading.Lock()
        """Held from :meth:`restore` to :meth:`remember`, so that texts spoken at once read a prefix once."""

    def __len__(self) -> int:
        return len(self._beginnings)

    def restore(self, cache: KeyValueCache, embedded: Tensor, positions: Tensor) -> bool:
        """Whether the prefix ``embedded`` (1, tokens, hidden) at ``positions`` (tokens,) was restored to ``cache``."""
        for place, one in enumerate(self._beginnings):
            if one.is_of(embedded, positions):
                cache.restore(one.kept)
                self._beginnings.append(self._beginnings.pop(place))
                return True
        return False

    def remember(self, cache: KeyValueCache, embedded: Tensor, positions: Tensor) -> None:
        cache.prefix = cache.kept()
        self._beginnings.append(_Beginning(embedded.clone(), positions.clone(), cache.prefix))
        del self._beginnings[:-VOICES]


class CausalReader(Protocol):
    def fill(self, embedded: Tensor, cache: KeyValueCache, positions: Tensor) -> None:
        """Only store keys and values, for later tokens."""


class TokenScorer(Protocol):
    """A language model for the decoding loops: reads tokens and scores the next. Ids are local: codes from 0 on, then
    the ids that end speech. Implemented by :class:`paretone.models.families.language_network.TokenModel`."""

    @property
    def transformer(self) -> CausalReader: ...

    @property
    def codes(self) -> int:
        """Number of codes, the ids that can be spoken."""

    @property
    def prefixes(self) -> Prefixes | None:
        """Cache of prefixes of requests."""

    @property
    def rows(self) -> int:
        """Number of ids, including those that end speech."""

    def embed(self, ids: Tensor | Sequence[int]) -> Tensor:
        """Map ids (…) to (…, hidden)."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Map (…, hidden) to scores (…, rows)."""

    def read(
        self, embedded: Tensor, cache: KeyValueCache, positions: Tensor, scored: int, keeps: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Read (1, n, hidden) after the cached tokens: scores (scored, rows) after the last ``scored``, and, unless
        ``keeps`` is ``None``, outputs of these inner layers with the last one's after the final norm, (n, (kept + 1) ·
        hidden)."""

    def cache(self, capacity: int, batch: int = 1) -> KeyValueCache:
        """Empty cache for the transformer."""

    def operations(self, tokens: int, context: int, scored: int) -> float:
        """Operations of reading ``tokens`` after ``context``, with scores after the last ``scored``."""


class Limits(NamedTuple):
    """Limits of a request for drafted tokens; see :func:`paretone.sampling.autoregressive.within_length`."""

    seen: int
    """Tokens before the first."""
    minimum: int
    length: int
    """−1: not known."""
    codes: int
    stops: int
    """Ids that end speech and are barred before the minimum."""


class FeatureScorer(TokenScorer, Protocol):
    """A draft that reads its target's hidden states; see :mod:`paretone.models.networks.feature_draft`. Implemented by
    :class:`paretone.models.families.language_network.FeatureDrafter`."""

    @property
    def drafts_at_once(self) -> bool:
        """Whether :meth:`drafts` is possible."""

    @property
    def reads(self) -> tuple[int, ...]:
        """Inner layers of the target whose outputs it reads; it also reads the last one's after the final norm."""

    def mix(self, features: Tensor) -> Tensor:
        """Map features (n, (reads + 1) · hidden) to states (n, hidden)."""

    def draft(
        self, states: Tensor, embedded: Tensor, cache: KeyValueCache, positions: Tensor, scored: int
    ) -> tuple[Tensor, Tensor]:
        """Map states of the tokens before, and tokens (n, hidden), to outputs (n, hidden), the next states, and scores
        (scored, rows) after the last ``scored`` tokens."""

    def drafts(
        self,
        states: Tensor,
        embedded: Tensor,
        cache: KeyValueCache,
        positions: Tensor,
        uniforms: list[float],
        limits: Limits,
        sampling: Truncation,
    ) -> tuple[list[int], list[Tensor]] | None:
        """Read tokens as :meth:`draft`, and draft a token for each of ``uniforms`` in one call, up to one that ends
        speech: these, and their distributions (ids,). See :func:`paretone.models.kernels.one_call.drafts_of`.
        ``None`` where that is not possible: then nothing was read."""
