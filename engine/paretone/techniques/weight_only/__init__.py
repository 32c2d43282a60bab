"""Weights of 8 or 4 bits for passes of few tokens (language models): packed once, used where that is faster.

Measurements are stored in a user's file per model, by device; ``measuring`` measures and packs. The products:
:mod:`paretone.models.kernels.few_rows`. Torch-free.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

from paretone import files
from paretone.errors import PlainError, SettingError
from paretone.fields import exact
from paretone.figures.glyphs import Mark
from paretone.measure import machine
from paretone.models.base import ModelInfo
from paretone.paths import own_place
from paretone.reading import read_json
from paretone.setting.knobs import Choice, Switch, Values
from paretone.setting.plan import LanguagePlan, Part
from paretone.setting.setting import Setting
from paretone.techniques.base import Context, Job, Paper, Technique

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
    """Speed and accuracy of one-token passes with packed weights, relative to the usual ones, on one machine."""

    machine: str
    checkpoint: str
    """SHA-256 of the weights, hexadecimal."""
    bits: str
    group: int
    """Number of inputs that share a scale; 0 for 8 bits."""
    speed_up: float
    """Time of the usual pass over that of the packed one, median of paired rounds."""
    low: float
    high: float
    """Ends of its 95 % interval."""
    error: float
    """Root mean square error of the scores over their standard deviation."""
    divergence: float
    """Mean KL divergence of the probabilities at temperature 1 from the usual ones (nats)."""
    created: str = ""
    """UTC, ISO 8601."""

    @property
    def gains(self) -> bool:
        """Whether packed weights are significantly faster."""
        return self.low > 1

    @property
    def compared(self) -> str:
        """Speed of packed passes over the usual ones, with 95 % interval: ``1.04 times as long (1.02 to 1.07)``."""
        if self.speed_up < 1:
            return f"{1 / self.speed_up:.2f} times as long ({1 / self.high:.2f} to {1 / self.low:.2f})"
        return f"{self.speed_up:.2f} times as fast ({self.low:.2f} to {self.high:.2f})"

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.machine, self.checkpoint, self.bits, self.group


@dataclass(frozen=True)
class Record:
    path: Path
    measured: tuple[Measured, ...] = ()

    @classmethod
    def of(cls, model: str) -> Record:
        """Record of the model with this id; empty without a file. A damaged file is ignored and logged."""
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
        wanted = machine, checkpoint, bits, group_of(bits, group)
        return next((one for one in self.measured if one.key == wanted), None)

    def with_measured(self, new: Measured) -> Record:
        """Add ``new``, replacing an earlier measurement with the same key, and write the file. Raises
        :class:`PlainError` if it cannot be written."""
        changed = replace(self, measured=(*(one for one in self.measured if one.key != new.key), new))
        data = {"schema": SCHEMA, "measured": [asdict(one) for one in changed.measured]}
        with files.explained(PlainError, f"{self.path} could not be written"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomically(self.path, json.dumps(data, indent=1).encode())
        return changed


def group_of(bits: str, group: int) -> int:
    """Effective group: none with 8 bits."""
    return group if bits == INT4 else 0


def current_machine() -> str:
    return machine.hardware(machine.describe().line)


def refusal(known: Measured, title: str) -> str:
    verb = "took" if known.speed_up < 1 else "were"
    chance = ", which may be chance," if known.high >= 1 else ""
    return (
        f"One-token passes of {title} with {known.bits} weights {verb} {known.compared}{chance} on this device "
        f"({known.machine.split(';')[0]}; 95 % interval in brackets); do without, or switch on “Even without a gain” "
        "(weight_only:anyway=on)."
    )


@dataclass(frozen=True)
class MeasureWeights:
    """Request to measure 8 bits, and 4 bits with each of ``groups``, for the weights that ``setting`` runs. The result
    is :class:`WeightsMeasured`."""

    activity: ClassVar[str] = "measuring packed weights"

    setting: Setting
    groups: tuple[int, ...] = (32,)


@dataclass(frozen=True)
class WeightsMeasured:
    measured: tuple[Measured, ...]
    path: str


NAME = "weight_only"
GROUPS = ("32", "64", "128", "256")


def resolve(context: Context, knobs: Values, plan: LanguagePlan) -> LanguagePlan:
    """Use products with packed weights, unless they were measured here without a gain."""
    info, bits, group = context.info, str(knobs["bits"]), int(str(knobs["group"]))
    if info.device_type not in ("", "cpu"):
        raise SettingError(
            f"{TECHNIQUE.title} uses torch's operators for processors, and {info.title} runs on {info.device}; load it "
            "on the processor, or do without."
        )
    anyway = bool(knobs["anyway"])
    ours = {"model": info.id, "checkpoint": plan.fingerprint}
    part = Part.of(f"{__name__}.measuring:packed", bits=bits, group=group, anyway=anyway, **ours)
    if not context.loaded:
        return replace(plan, products=part)
    known = Record.of(info.id).find(current_machine(), plan.fingerprint, bits, group)
    if known is not None and not known.gains and not anyway:
        raise SettingError(refusal(known, info.title))
    rounded = f" by {known.divergence:.2g} nats" if known is not None else ""
    return replace(plan, products=part).noted(
        f"Weights are rounded to {bits.removeprefix('int')} bits for passes of few tokens, which moves the model's "
        f"predictions{rounded}."
    )


def little(info: ModelInfo) -> str:
    """Note that nothing was gained here, or ``""``."""
    if not info.fingerprint:
        return ""
    here = current_machine(), info.fingerprint
    found = (one for one in Record.of(info.id).measured if one.key[:2] == here)
    best = max(found, key=lambda one: one.speed_up, default=None)
    return "" if best is None or best.gains else refusal(best, info.title)


def describe(knobs: Values) -> str:
    if knobs["bits"] == INT8:
        return "weights of 8 bits with one scale per output, for passes of few tokens"
    return f"weights of 4 bits in groups of {knobs['group']} inputs, for passes of few tokens"


TECHNIQUE = Technique(
    name=NAME,
    title="Weight-only int8/int4",
    summary="Packs the weights into 8 or 4 bits for passes of few tokens, where reading them takes most of the time.",
    benefit="Smaller weights, where measured to be faster",
    paper=Paper("LLM.int8() and GPTQ: weights of language models in 8 and 4 bits", "arXiv 2208.07339, 2210.17323"),
    families=("language",),
    slot="precision",
    place=45,
    mark=Mark("purple", "square"),
    little=little,
    commands=(f"{__name__}.command",),
    jobs=(Job("measure", "Measuring packed weights", f"{__name__}:MeasureWeights", f"{__name__}.measuring:carry_out"),),
    resolve=resolve,
    describe=describe,
    knobs=(
        Choice(
            "bits",
            "Weights",
            "Eight bits keep predictions nearly as they are; four halve what is read once more, and are heard sooner. "
            "Activations are bfloat16 in these products.",
            default=INT8,
            values=(INT8, INT4),
            titles=("8 bits", "4 bits"),
        ),
        Choice(
            "group",
            "Group of 4-bit weights",
            "Inputs that share a scale and a zero point: fewer are more exact and larger.",
            default=GROUPS[0],
            values=GROUPS,
            titles=tuple(f"{one} inputs" for one in GROUPS),
        ),
        Switch(
            "anyway",
            "Even without a gain",
            "Use packed weights even where they were measured to gain nothing, for example to hear them.",
            default=False,
        ),
    ),
)
