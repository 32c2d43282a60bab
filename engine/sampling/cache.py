"""Keys and values that a causal transformer keeps, in memory that is taken once.

Rows are never moved: to forget tokens is to count fewer of them (:meth:`KeyValueCache.crop`), so that taking back
rejected tokens costs nothing.
"""

from __future__ import annotations

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
        """How many tokens count."""
        memory = torch.empty(layers, 2, batch, heads, capacity, head_width, device=device, dtype=dtype)
        self._keys = [layer[0] for layer in memory]
        self._values = [layer[1] for layer in memory]

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write ``keys`` and ``values``, (batch, heads, tokens, head_width), behind what counts, and return all up to
        there, (batch, heads, length + tokens, head_width). They count once :meth:`advance` has been called.

        Raises :class:`ValueError` where there is no room for them.
        """
        tokens = keys.shape[2]
        end = self.length + tokens
        if end > self.capacity:
            raise ValueError(f"{end} tokens do not fit into a cache of {self.capacity}.")
        all_keys, all_values = self._keys[layer], self._values[layer]
        all_keys.narrow(2, self.length, tokens).copy_(keys)
        all_values.narrow(2, self.length, tokens).copy_(values)
        return all_keys.narrow(2, 0, end), all_values.narrow(2, 0, end)

    def advance(self, tokens: int) -> None:
        """Count ``tokens`` more that every layer has written."""
        if not 0 <= tokens <= self.capacity - self.length:
            raise ValueError(f"{tokens} tokens cannot follow {self.length} in a cache of {self.capacity}.")
        self.length += tokens

    def crop(self, length: int) -> None:
        """Count only the first ``length`` tokens."""
        if not 0 <= length <= self.length:
            raise ValueError(f"A cache of {self.length} tokens cannot be cropped to {length}.")
        self.length = length
