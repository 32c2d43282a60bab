"""Which layers stay, and a checkpoint's tensors once the others are gone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from torch import Tensor

from engine.errors import SettingError

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
    kept = {}
    for name, value in tensors.items():
        found = _LAYER.search(name)
        if found is None:
            kept[name] = value
        elif int(found[2]) in places:
            kept[f"{name[: found.start(2)]}{places[int(found[2])]}{name[found.end(2) :]}"] = value
    return kept


def layer_of(name: str) -> int | None:
    """The layer that a tensor belongs to by its official name, or ``None``."""
    found = _LAYER.search(name)
    return None if found is None else int(found[2])
