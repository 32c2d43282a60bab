"""Which layers stay, and a checkpoint's tensors once the others are gone. Torch-free."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paretone.errors import SettingError

if TYPE_CHECKING:
    from torch import Tensor

_LAYER = re.compile(r"(^|\.)layers\.(\d+)\.")


def require_layers(retained: Sequence[int], layers: int) -> tuple[int, ...]:
    """``retained`` as a tuple. Raises :class:`SettingError` unless they are some of ``layers`` layers, each once, in
    order."""
    chosen = tuple(retained)
    if not chosen or list(chosen) != sorted(set(chosen)) or chosen[0] < 0 or chosen[-1] >= layers:
        listed = ", ".join(map(str, chosen)) or "none"
        raise SettingError(
            f"The layers to keep must be some of 0 to {layers - 1}, each once and in order, not {listed}."
        )
    return chosen


def pruned(tensors: Mapping[str, Tensor], retained: Sequence[int]) -> dict[str, Tensor]:
    """``tensors`` by their official names without the layers that are not ``retained``; those that are get new
    numbers, from 0 and without gaps. What belongs to no layer stays as it is."""
    places = {layer: place for place, layer in enumerate(retained)}
    renamed = ((renumbered(name, places), value) for name, value in tensors.items())
    return {name: value for name, value in renamed if name is not None}


def renumbered(name: str, places: Mapping[int, int]) -> str | None:
    """The ``name`` of a tensor whose layer gets the number that ``places`` has for it, ``None`` if there is none. The
    name of what belongs to no layer stays as it is."""
    found = _LAYER.search(name)
    if found is None:
        return name
    place = places.get(int(found[2]))
    return None if place is None else f"{name[: found.start(2)]}{place}{name[found.end(2) :]}"


def layer_of(name: str) -> int | None:
    """The layer that a tensor belongs to by its official name, or ``None``."""
    found = _LAYER.search(name)
    return None if found is None else int(found[2])
