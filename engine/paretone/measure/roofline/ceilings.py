"""Ceilings of a device, operations and bytes per second: measured (:mod:`paretone.measure.roofline.benchmarks`) and
kept in the user's data folder, or those of graphics cards as their makers state them. Torch-free.

Cards are in ``resources/roofline/cards.toml``; ``cards.toml`` in the user's data folder adds cards or replaces ours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paretone.by_name import by_name
from paretone.errors import PlainError, SettingError
from paretone.fields import exact
from paretone.files import explained, write_atomically
from paretone.measure.roofline.counts import Work
from paretone.paths import data_folder, resource
from paretone.reading import parsed_toml, read_text

SCHEMA = 2
"""Since 2, of the products with packed weights as well."""
FILE = "ceilings.json"
COMPUTE, MEMORY, LAUNCH = "compute", "memory", "launch"
BOUNDS = (COMPUTE, MEMORY, LAUNCH)
"""Possible bounds of a component: arithmetic, memory traffic, or kernel launches (on CPUs, operator calls)."""


@dataclass(frozen=True)
class Ceilings:
    """Ceilings of one device under one version of torch. Seconds are by ``clock``: all threads of the process on a CPU,
    device time on a GPU."""

    device: str
    """Device name for people."""
    clock: str
    operations: Mapping[str, float]
    """Operations per second of a large matrix product, by precision."""
    bytes: Mapping[str, float]
    """Bytes per second of a large copy, reads plus writes, by precision."""
    launch_seconds: float
    """Seconds per kernel launch or operator call."""
    graph_launch_seconds: float | None = None
    """Likewise for a kernel within a CUDA graph."""
    threads: int = 1
    torch: str = ""
    created: str = ""
    """UTC, ISO 8601."""
    stated: str = field(default="", compare=False)
    """Source of unmeasured ceilings."""

    @property
    def key(self) -> str:
        """Key in the store: device, torch version and number of threads."""
        return f"{self.device}; torch {self.torch}; {self.threads} threads"

    def operations_of(self, precision: str) -> float:
        """Operations per second in ``precision``; float32's if unmeasured."""
        return self.operations.get(precision) or self.operations["float32"]

    def bytes_of(self, precision: str) -> float:
        """Bytes per second in ``precision``; float32's if unmeasured."""
        return self.bytes.get(precision) or self.bytes["float32"]

    def ridge(self, precision: str) -> float:
        """Operations per byte from which arithmetic is the bound."""
        return self.operations_of(precision) / self.bytes_of(precision)

    def seconds(self, work: Work, precision: str) -> tuple[float, float]:
        """Lower bounds in seconds for the arithmetic of ``work``, and for its traffic."""
        return work.operations / self.operations_of(precision), work.bytes / self.bytes_of(precision)

    def floor(self, work: Work, precision: str) -> float:
        """Lower bound in seconds for ``work``; arithmetic and traffic overlap."""
        return max(self.seconds(work, precision))

    def launching(self, launches: float, graphed: bool = False) -> float:
        """Seconds to launch this number of kernels."""
        within = self.graph_launch_seconds if graphed else None
        return launches * (self.launch_seconds if within is None else within)

    def bound(self, work: Work, precision: str, launches: float, graphed: bool = False) -> str:
        """The largest of :data:`BOUNDS`."""
        taken = (*self.seconds(work, precision), self.launching(launches, graphed))
        return BOUNDS[taken.index(max(taken))]

    def to_json(self) -> dict:
        return {**asdict(self), "operations": dict(self.operations), "bytes": dict(self.bytes)}

    @classmethod
    def from_json(cls, data: Mapping) -> Ceilings:
        """Inverse of :meth:`to_json`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError`."""
        read = cls(**{**data, "operations": dict(data["operations"]), "bytes": dict(data["bytes"])})
        values = (*read.operations.values(), *read.bytes.values(), read.launch_seconds)
        if not all(isinstance(one, float | int) and math.isfinite(one) and one > 0 for one in values):
            raise ValueError("a ceiling is not a positive number")
        if "float32" not in read.operations or "float32" not in read.bytes:
            raise ValueError("the ceiling of float32 is missing")
        return read


def path() -> Path:
    return data_folder() / FILE


def kept(key: str) -> Ceilings | None:
    """Ceilings stored under :attr:`Ceilings.key`; ``None`` also for an unreadable file: they can be measured again."""
    return _read().get(key)


def keep(ceilings: Ceilings) -> None:
    """Store ``ceilings`` with those of other devices. Raises :class:`PlainError` if they cannot be written."""
    everything = {**_read(), ceilings.key: ceilings}
    data = {"schema": SCHEMA, "ceilings": [one.to_json() for one in everything.values()]}
    with explained(PlainError, f"The ceilings could not be kept in {path()}"):
        path().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path(), (json.dumps(data, indent=1) + "\n").encode())


def _read() -> dict[str, Ceilings]:
    try:
        data = json.loads(path().read_bytes())
        if data["schema"] != SCHEMA:
            return {}
        read = [Ceilings.from_json(one) for one in data["ceilings"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {one.key: one for one in read}


CARDS = "cards.toml"
CARDS_CLOCK = "seconds of the device"
LAUNCH_SECONDS = 11e-6
"""Seconds per launch unless a card states its own: the roofline post's 0.67 ms per layer over 61 eager kernels."""
_FIELDS = {"name": str, "title": str, "source": str, "bytes": float | int, "operations": dict}
_LATER = {"launch_seconds": float | int, "graph_launch_seconds": float | int}


def cards() -> Mapping[str, Ceilings]:
    """Ceilings by name of card. Raises :class:`SettingError` that names the faulty field of the user's file."""
    own = data_folder() / CARDS
    return {**_read_cards(resource("roofline", CARDS)), **(_read_cards(own) if own.exists() else {})}


def card(name: str) -> Ceilings:
    """Ceilings of the card ``name``. Raises :class:`SettingError` with the known names."""
    known = cards()
    return by_name(name if name in known else name.lower(), known, "card", "cards")


def _read_cards(path: Path) -> dict[str, Ceilings]:
    try:
        data = exact(parsed_toml(read_text(path)), str(path), {"card": list}, SettingError)
        return dict(_ceilings(one, f"{path}: card[{number}]") for number, one in enumerate(data["card"]))
    except PlainError:
        raise
    except (OSError, ValueError, TypeError) as error:
        raise SettingError(f"{path} cannot be used: {error}; correct it, or remove it.") from error


def _ceilings(data: object, where: str) -> tuple[str, Ceilings]:
    found: dict[str, Any] = exact(data, where, {**_FIELDS, **_LATER}, SettingError, optional=_LATER)
    speeds = dict.fromkeys(found["operations"], found["bytes"])
    card = {"device": found["title"], "clock": CARDS_CLOCK, "operations": found["operations"], "bytes": speeds}
    launching = {"launch_seconds": LAUNCH_SECONDS, **{name: found[name] for name in _LATER if name in found}}
    return found["name"], Ceilings.from_json({**card, **launching, "stated": found["source"]})
