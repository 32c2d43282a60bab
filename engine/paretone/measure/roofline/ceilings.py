"""Ceilings of a device, operations and bytes per second, as measured on it
(:mod:`paretone.measure.roofline.benchmarks`), and their file in the user's data folder. Torch-free."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from paretone.errors import PlainError
from paretone.files import reason, write_atomically
from paretone.measure.roofline.counts import Work
from paretone.paths import data_folder

SCHEMA = 1
FILE = "ceilings.json"
COMPUTE, MEMORY, LAUNCH = "compute", "memory", "launch"
BOUNDS = (COMPUTE, MEMORY, LAUNCH)
"""Possible limits of a component: arithmetic, memory traffic, or kernel launches (on CPUs, calling
operators)."""


@dataclass(frozen=True)
class Ceilings:
    """The ceilings of one device under one version of torch.

    Seconds are those of ``clock``: of all threads of the process on a processor, of the device on a GPU.
    """

    device: str
    """As people call it."""
    clock: str
    operations: Mapping[str, float]
    """Operations a second of a large matrix product, by precision."""
    bytes: Mapping[str, float]
    """Bytes a second of a large copy, read and written ones, by precision."""
    launch_seconds: float
    """Seconds per kernel launch or operator call."""
    graph_launch_seconds: float | None = None
    """The same for a kernel within a CUDA graph."""
    threads: int = 1
    torch: str = ""
    created: str = ""
    """UTC, ISO 8601."""
    stated: str = field(default="", compare=False)
    """Source of ceilings that were not measured."""

    @property
    def key(self) -> str:
        """Key of stored ceilings: another device, version or number of threads needs its own."""
        return f"{self.device}; torch {self.torch}; {self.threads} threads"

    def operations_of(self, precision: str) -> float:
        """Operations a second in ``precision``; float32's if that was not measured."""
        return self.operations.get(precision) or self.operations["float32"]

    def bytes_of(self, precision: str) -> float:
        """Bytes a second in ``precision``; float32's if that was not measured."""
        return self.bytes.get(precision) or self.bytes["float32"]

    def ridge(self, precision: str) -> float:
        """Operations for each byte from which on arithmetic is what bounds."""
        return self.operations_of(precision) / self.bytes_of(precision)

    def seconds(self, work: Work, precision: str) -> tuple[float, float]:
        """The least seconds for the arithmetic of ``work``, and for its traffic."""
        return work.operations / self.operations_of(precision), work.bytes / self.bytes_of(precision)

    def floor(self, work: Work, precision: str) -> float:
        """The least seconds for ``work``: arithmetic and traffic run at the same time."""
        return max(self.seconds(work, precision))

    def launching(self, launches: float, graphed: bool = False) -> float:
        """Seconds to launch this number of kernels."""
        within = self.graph_launch_seconds if graphed else None
        return launches * (self.launch_seconds if within is None else within)

    def bound(self, work: Work, precision: str, launches: float, graphed: bool = False) -> str:
        """Which of :data:`BOUNDS` takes longest."""
        taken = (*self.seconds(work, precision), self.launching(launches, graphed))
        return BOUNDS[taken.index(max(taken))]

    def to_json(self) -> dict:
        """Plain JSON values; :meth:`from_json` reads them back."""
        return {**asdict(self), "operations": dict(self.operations), "bytes": dict(self.bytes)}

    @classmethod
    def from_json(cls, data: Mapping) -> Ceilings:
        """Read what :meth:`to_json` wrote. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError`."""
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
    """Those kept under :attr:`Ceilings.key`, or ``None``; a file that cannot be read counts as none, since what it held
    can be measured again."""
    return _read().get(key)


def keep(ceilings: Ceilings) -> None:
    """Keep ``ceilings`` with those of other devices. Raises :class:`PlainError` if they cannot be written."""
    everything = {**_read(), ceilings.key: ceilings}
    data = {"schema": SCHEMA, "ceilings": [one.to_json() for one in everything.values()]}
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path(), (json.dumps(data, indent=1) + "\n").encode())
    except OSError as error:
        raise PlainError(f"The ceilings could not be kept in {path()}: {reason(error)}.") from error


def _read() -> dict[str, Ceilings]:
    try:
        data = json.loads(path().read_bytes())
        if data["schema"] != SCHEMA:
            return {}
        read = [Ceilings.from_json(one) for one in data["ceilings"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {one.key: one for one in read}
