"""Cache of a few things that are slow to make."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Made = TypeVar("Made")
VOICES = 4
"""Number of voices kept ready: those that requests to a server take turns with."""


class LastUsed(Generic[Made]):
    """Values by key. A new one replaces the least recently used one."""

    def __init__(self, most: int) -> None:
        """``most``: the number to keep."""
        self._most = most
        self._kept: OrderedDict[Hashable, Made] = OrderedDict()
        self._one = threading.RLock()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Made]:
        """The values, most recently used last."""
        return iter(self._kept.values())

    def of(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The value under ``key``, made by ``make`` if there is none."""
        with self._one:
            if key not in self._kept:
                self._kept[key] = make()
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]
