"""Cache of the common prefixes of requests with one voice: a causal transformer's keys and values of them do not depend
on later tokens.

A request says how much of its beginning others share (:attr:`paretone.sampling.autoregressive.Request.shared`). That
much is read in a separate pass, whether it is remembered or not, so that the same request gives the same bits whatever
was spoken before it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paretone.sampling.cache import KeyValueCache

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
    """Remembers, for one model whose weights never change, the keys and values of the beginnings used last."""

    def __init__(self) -> None:
        self._beginnings: list[_Beginning] = []

    def __len__(self) -> int:
        """Number of cached prefixes."""
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
        """Cache this prefix."""
        self._beginnings.append(_Beginning(embedded.clone(), positions.clone(), cache.kept()))
        del self._beginnings[:-MOST_KEPT]
