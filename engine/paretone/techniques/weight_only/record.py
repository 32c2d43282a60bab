"""Measurements of packed weights by device, in a file of the user's for each model. Torch-free."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

from paretone import files
from paretone.errors import PlainError
from paretone.fields import exact
from paretone.measure.machine import describe, hardware
from paretone.paths import own_place
from paretone.reading import read_json
from paretone.setting.setting import Setting

FILE = "weight-only.json"
SCHEMA = 1
INT8, INT4 = "int8", "int4"
_FIELDS = {
    "machine": str,
    "checkpoint": str,
    "bits": str,
    "group": int,
    "speed_up": float | int,
    "low": float | int,
    "high": float | int,
    "error": float | int,
    "divergence": float | int,
    "created": str,
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Measured:
    """One-token passes with packed weights against the usual ones, on one machine."""

    machine: str
    checkpoint: str
    """SHA-256 of the weights, hexadecimal."""
    bits: str
    group: int
    """Inputs that share a scale; 0 for 8 bits."""
    speed_up: float
    """Median of paired rounds: seconds of the usual pass over those of the packed one."""
    low: float
    high: float
    """Ends of its 95 % interval."""
    error: float
    """Root mean square error of the scores over their standard deviation."""
    divergence: float
    """Mean divergence of the probabilities at temperature 1 from the usual ones (KL), in nats."""
    created: str = ""
    """UTC, ISO 8601."""

    @property
    def gains(self) -> bool:
        """Whether packed weights are faster, beyond chance."""
        return self.low > 1

    @property
    def compared(self) -> str:
        """Packed passes against the usual ones, with the 95 % interval: ``1.04 times as long (1.02 to 1.07)``."""
        if self.speed_up < 1:
            return f"{1 / self.speed_up:.2f} times as long ({1 / self.high:.2f} to {1 / self.low:.2f})"
        return f"{self.speed_up:.2f} times as fast ({self.low:.2f} to {self.high:.2f})"

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What it was measured of."""
        return self.machine, self.checkpoint, self.bits, self.group


@dataclass(frozen=True)
class Record:
    """All measurements of a model."""

    path: Path
    measured: tuple[Measured, ...] = ()

    @classmethod
    def of(cls, model: str) -> Record:
        """That of the model with this id; empty without a file. A damaged file counts as none, and is logged."""
        path = own_place(model) / FILE
        if not path.is_file():
            return cls(path)
        try:
            data = exact(read_json(path), FILE, {"schema": int, "measured": list}, PlainError)
            if data["schema"] != SCHEMA:
                raise PlainError(f"it has schema {data['schema']}; this version reads schema {SCHEMA}")
            found = [exact(one, f"{FILE}.measured", _FIELDS, PlainError) for one in data["measured"]]
        except (OSError, ValueError, PlainError) as error:
            _log.warning("%s cannot be read (%s); packed weights are measured again.", path, error)
            return cls(path)
        return cls(path, tuple(Measured(**one) for one in found))

    def find(self, machine: str, checkpoint: str, bits: str, group: int) -> Measured | None:
        """What was measured of these weights on this machine."""
        wanted = machine, checkpoint, bits, group_of(bits, group)
        return next((one for one in self.measured if one.key == wanted), None)

    def all_of(self, machine: str, checkpoint: str) -> tuple[Measured, ...]:
        """All that was measured of these weights on this machine."""
        return tuple(one for one in self.measured if one.key[:2] == (machine, checkpoint))

    def with_measured(self, new: Measured) -> Record:
        """The same with ``new``, in place of an earlier one of the same, written to its file. Raises
        :class:`PlainError` if it cannot be written."""
        changed = replace(self, measured=(*(one for one in self.measured if one.key != new.key), new))
        data = {"schema": SCHEMA, "measured": [asdict(one) for one in changed.measured]}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(self.path, json.dumps(data, indent=1).encode())
        return changed


def group_of(bits: str, group: int) -> int:
    """The group that matters: none with 8 bits."""
    return group if bits == INT4 else 0


def current_machine() -> str:
    """This machine's hardware, in a line."""
    return hardware(describe().line)


def refusal(known: Measured, title: str) -> str:
    """That packed weights gain nothing, as a sentence."""
    verb = "took" if known.speed_up < 1 else "were"
    chance = ", which may be chance," if known.high >= 1 else ""
    return (
        f"One-token passes of {title} with {known.bits} weights {verb} {known.compared}{chance} on this device "
        f"({known.machine.split(';')[0]}; 95 % interval in brackets); do without, or switch on “Even without a gain”."
    )


@dataclass(frozen=True)
class MeasureWeights:
    """Measure 8 bits, and 4 bits in each group of ``groups``, of the weights that ``setting`` runs. The result is
    :class:`WeightsMeasured`."""

    activity: ClassVar[str] = "measuring packed weights"

    setting: Setting
    groups: tuple[int, ...] = (32,)


@dataclass(frozen=True)
class WeightsMeasured:
    """What was measured on this device."""

    measured: tuple[Measured, ...]
    path: str
    """File that keeps it."""
