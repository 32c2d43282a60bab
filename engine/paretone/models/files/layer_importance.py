"""Measured importance of each layer of a speech language model, and the layers to keep.

Torch-free, so that a front end can plot it. The file ``layers.json`` lies next to the model's checkpoint, or in the
user's own folder of that model.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretone import files
from paretone.errors import CheckpointError, PlainError, SettingError
from paretone.reading import parsed_json, read_text, readable

if TYPE_CHECKING:
    from torch import Tensor


FILE = "layers.json"
WORD_ERROR, DIVERGENCE, COSINE = "word_error", "divergence", "cosine"
MEASURES: Mapping[str, str] = {
    WORD_ERROR: "Word error rate without the layer (WLI)",
    DIVERGENCE: "Divergence without the layer (KL, nats)",
    COSINE: "Change of direction by the layer (1 − cosine)",
}
"""Titles of the measures; higher values are more important layers."""
DECIDING = (WORD_ERROR, DIVERGENCE, COSINE)
"""Priority of measures: the first available one decides, the next breaks ties."""


@dataclass(frozen=True)
class LayerImportance:
    """One measure of all layers. ``values`` by layer, in the unit in :data:`MEASURES`."""

    measure: str
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    """Ends of the 95 % bootstrap intervals over utterances; empty if not measured."""
    ranks: tuple[tuple[int, int], ...] = ()
    """95 % bootstrap interval of each layer's rank, 0 for the most important; empty if not measured."""
    baseline: float = 0.0
    utterances: int = 0
    run_away: tuple[int, ...] = ()
    """Number of utterances that did not end by themselves without each layer; empty if nothing was spoken."""
    judge: str = ""
    """Judge of word errors, as in :mod:`paretone.measure.evaluation.judges`; ``""``: pocketsphinx, if word errors."""


@dataclass(frozen=True)
class ImportanceRecord:
    model: str
    checkpoint: str
    """SHA-256 of the checkpoint file, hexadecimal."""
    layers: int
    measures: tuple[LayerImportance, ...]
    seed: int = 0
    seconds: float = 0.0
    created: str = ""
    machine: str = ""
    notes: tuple[str, ...] = field(default=())

    def measure(self, name: str) -> LayerImportance | None:
        """The measure called ``name``, or ``None`` if not taken."""
        return next((one for one in self.measures if one.measure == name), None)

    @property
    def deciding(self) -> LayerImportance:
        return self._taken[0]

    @property
    def order(self) -> tuple[int, ...]:
        """All layers, most important first. Ties of one measure are broken by the next, then by the lower index. Layers
        whose word error rate is indistinguishable from the complete model's, because the interval reaches down to it,
        are tied by that measure; otherwise noise would rank them."""
        keys = {layer: tuple(-_weight(one, layer) for one in self._taken) for layer in range(self.layers)}
        return tuple(sorted(range(self.layers), key=lambda layer: (keys[layer], layer)))

    def retained(self, depth: int) -> tuple[int, ...]:
        """The ``depth`` most important layers in their own order (SPADE: all others are removed at once). Raises
        :class:`SettingError` for an impossible depth."""
        if not 1 <= depth <= self.layers:
            raise SettingError(f"{self.model} has {self.layers} layers; keep between 1 and {self.layers}, not {depth}.")
        return tuple(sorted(self.order[:depth]))

    def published(self, depth: int, measure: str) -> tuple[int, ...]:
        """The ``depth`` layers with the largest values of ``measure`` in their own order, as published: noise is not
        told apart, and other measures only break exact ties. Raises :class:`SettingError` if it was not taken."""
        one, usual = self.measure(measure), self.order
        if one is None:
            raise SettingError(f"The layers of {self.model} were not measured by {measure}; measure them first.")
        values = one.values
        return tuple(sorted(sorted(usual, key=lambda layer: (-values[layer], usual.index(layer)))[:depth]))

    def cut(self, depth: int) -> tuple[str, float] | None:
        """The measure that separates the ``depth`` retained layers from the others, and the midpoint between the last
        retained and the first removed one; ``None`` if none is removed, or no measure separates them."""
        if not 0 < depth < self.layers:
            return None
        stays, goes = self.order[depth - 1 : depth + 1]
        for one in self._taken:
            weights = _weight(one, stays), _weight(one, goes)
            if weights[0] != weights[1]:
                return one.measure, sum(weights) / 2
        return None

    @property
    def _taken(self) -> tuple[LayerImportance, ...]:
        """Available measures, the deciding one first."""
        return tuple(one for one in map(self.measure, DECIDING) if one is not None)

    def with_measure(self, measure: LayerImportance) -> ImportanceRecord:
        """A copy with ``measure`` in place of an earlier one of its name."""
        others = tuple(one for one in self.measures if one.measure != measure.measure)
        return ImportanceRecord(**{**vars(self), "measures": (*others, measure)})

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str, place: str) -> ImportanceRecord:
        """Parse the output of :meth:`to_json`. Raises :class:`CheckpointError` that names ``place``."""
        with readable(CheckpointError, f"{place} is not a measurement of layers", "measure again"):
            data = parsed_json(text)
            measures = tuple(
                LayerImportance(**{name: _tuples(value) for name, value in one.items()}) for one in data.pop("measures")
            )
            record = cls(**{**data, "notes": tuple(data.get("notes", ())), "measures": measures})
        if not record.measures or any(not _fits(one, record.layers) for one in record.measures):
            raise CheckpointError(f"{place} lacks values for some of its {record.layers} layers; measure again.")
        return record

    def write(self, path: Path) -> None:
        """Write to ``path`` atomically. Raises :class:`PlainError`."""
        with files.explained(PlainError, f"{path} could not be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomically(path, self.to_json().encode())


def _weight(one: LayerImportance, layer: int) -> float:
    lost_in_noise = one.measure == WORD_ERROR and one.low and one.low[layer] <= one.baseline
    return one.baseline if lost_in_noise else one.values[layer]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _fits(one: LayerImportance, layers: int) -> bool:
    parts = (one.values, one.low, one.high, one.ranks, one.run_away)
    return (
        one.measure in MEASURES
        and all(isinstance(part, tuple) and len(part) in (0, layers) for part in parts)
        and len(one.values) == layers
        and all(isinstance(bounds, tuple) and len(bounds) == 2 for bounds in one.ranks)
        and all(isinstance(value, int | float) and math.isfinite(value) for value in (*one.values, *one.low, *one.high))
    )


def read_record(folders: Sequence[Path], checkpoint: str) -> ImportanceRecord | None:
    """The record of the checkpoint with this fingerprint in the last of ``folders`` that has one, or ``None``. Raises
    :class:`CheckpointError` for a damaged file."""
    found = None
    for folder in folders:
        path = folder / FILE
        if path.is_file():
            with readable(CheckpointError, f"{path} cannot be read", "measure again"):
                text = read_text(path)
            record = ImportanceRecord.from_json(text, str(path))
            found = record if record.checkpoint == checkpoint else found
    return found


_LAYER = re.compile(r"(^|\.)layers\.(\d+)\.")


def require_layers(retained: Sequence[int], layers: int) -> tuple[int, ...]:
    """``retained`` as a tuple. Raises :class:`SettingError` unless they ascend strictly and are below ``layers``."""
    chosen = tuple(retained)
    if not chosen or list(chosen) != sorted(set(chosen)) or chosen[0] < 0 or chosen[-1] >= layers:
        listed = ", ".join(map(str, chosen)) or "none"
        raise SettingError(
            f"The layers to keep must be some of 0 to {layers - 1}, each once and in order, not {listed}."
        )
    return chosen


def pruned(tensors: Mapping[str, Tensor], retained: Sequence[int]) -> dict[str, Tensor]:
    """``tensors`` by official names, of layers only ``retained``, renumbered from 0; others are unchanged."""
    places = {layer: place for place, layer in enumerate(retained)}
    renamed = ((renumbered(name, places), value) for name, value in tensors.items())
    return {name: value for name, value in renamed if name is not None}


def renumbered(name: str, places: Mapping[int, int]) -> str | None:
    """The ``name`` of a tensor with its layer, if any, renumbered by ``places``; ``None`` if ``places`` lacks it."""
    found = _LAYER.search(name)
    if found is None:
        return name
    place = places.get(int(found[2]))
    return None if place is None else f"{name[: found.start(2)]}{place}{name[found.end(2) :]}"


def layer_of(name: str) -> int | None:
    found = _LAYER.search(name)
    return None if found is None else int(found[2])
