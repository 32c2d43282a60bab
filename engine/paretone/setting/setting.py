"""A setting: one point of the trade-off space, hashable, comparable and serialisable."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

from paretone.errors import SettingError
from paretone.fields import exact, is_of, typed
from paretone.reading import parsed_json, shown
from paretone.setting.knobs import NO_VALUES, Values


class Artefact(Protocol):
    """Result of a technique's preparation needed for synthesis, such as a strategy table. Immutable and picklable."""

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digits, equal for artefacts with equal effect; settings refer to artefacts by them."""


LARGEST_SEED = 2**63 - 1
"""Limit of all generators and file formats."""


def checked_seed(value: object, name: str = "seed") -> int:
    """``value`` as a seed. Raises :class:`SettingError` with ``name`` unless it is whole and from 0 to 2**63 - 1."""
    if not is_of(value, int) or not 0 <= value <= LARGEST_SEED:
        raise SettingError(f"{name} must be a whole number between 0 and 2**63 - 1, not {shown(value)}.")
    return value


@dataclass(frozen=True)
class UsedTechnique:
    """A technique in a setting, with its knob values. ``artefact``: fingerprint of the technique's prepared artefact
    (such as a strategy table), or ``""``."""

    technique: str
    knobs: Values = NO_VALUES
    artefact: str = ""


@dataclass(frozen=True)
class Published:
    """One setting of a technique in its source, declared by the technique; see :mod:`paretone.techniques.published`."""

    name: str
    """Short name to type, such as ``T4``; unique among those for one model."""
    source: str
    """Place in the source, such as ``table 1``."""
    models: tuple[str, ...]
    """Catalogue models that the source measured; empty: no particular ones."""
    knobs: Values
    """Values of the technique's knobs that the source fixes."""
    options: Values = NO_VALUES
    """Sampler options that the source fixes; models without one of them are not offered this setting."""
    main: bool = False
    """Whether it is the usual one of several for a model; otherwise the first is."""
    remark: str = ""
    """What the product has otherwise, whatever the knobs, in sentences."""


@dataclass(frozen=True)
class Difference:
    """One difference of two settings; ``technique``: whether it concerns techniques."""

    what: str
    left: str
    right: str
    technique: bool


@typed
@dataclass(frozen=True)
class Setting:
    """Model, sampler options, techniques in use and seed. ``options``: knobs of the model family."""

    model: str
    options: Values = NO_VALUES
    techniques: tuple[UsedTechnique, ...] = field(default=())
    seed: int = 0

    def technique(self, name: str) -> UsedTechnique | None:
        """The technique with its knobs, or ``None`` if unused."""
        return next((entry for entry in self.techniques if entry.technique == name), None)

    def with_technique(self, entry: UsedTechnique) -> Setting:
        """Copy with ``entry``, in place of an earlier entry of the same technique."""
        others = tuple(other for other in self.techniques if other.technique != entry.technique)
        return replace(self, techniques=tuple(sorted((*others, entry), key=lambda one: one.technique)))

    def without(self, technique: str) -> Setting:
        return replace(self, techniques=tuple(one for one in self.techniques if one.technique != technique))

    @property
    def baseline(self) -> Setting:
        """The same setting without techniques."""
        return replace(self, techniques=())

    @property
    def bare(self) -> Setting:
        """The same setting without seed and artefacts, as in studies, which prepare artefacts themselves."""
        return replace(self, seed=0, techniques=tuple(replace(one, artefact="") for one in self.techniques))

    def to_json(self) -> dict:
        return {
            "model": self.model,
            "options": dict(self.options),
            "techniques": [
                {"technique": one.technique, "knobs": dict(one.knobs), "artefact": one.artefact}
                for one in self.techniques
            ],
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, data: object) -> Setting:
        """Inverse of :meth:`to_json`. Raises :class:`SettingError` with the field at fault."""
        kinds = {"model": str, "options": dict, "techniques": list, "seed": int}
        fields = exact(data, "setting", kinds, SettingError)
        kinds, techniques = {"technique": str, "knobs": dict, "artefact": str}, []
        for index, entry in enumerate(fields["techniques"]):
            one = exact(entry, f"setting.techniques[{index}]", kinds, SettingError)
            techniques.append(UsedTechnique(one["technique"], Values(one["knobs"]), one["artefact"]))
        return cls(fields["model"], Values(fields["options"]), tuple(techniques), fields["seed"])

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits, equal for equal settings."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, other: Setting) -> tuple[Difference, ...]:
        """All differences from ``other``, those of techniques last."""
        found = []
        for what in ("model", "seed"):
            if getattr(self, what) != getattr(other, what):
                found.append(Difference(what, str(getattr(self, what)), str(getattr(other, what)), False))
        for name in sorted(set(self.options) | set(other.options)):
            left, right = self.options.get(name), other.options.get(name)
            if left != right:
                found.append(Difference(name, _shown(left), _shown(right), False))
        for name in sorted({one.technique for one in (*self.techniques, *other.techniques)}):
            left, right = self.technique(name), other.technique(name)
            if left is None or right is None:
                found.append(Difference(name, "off" if left is None else "on", "off" if right is None else "on", True))
                continue
            for knob in sorted(set(left.knobs) | set(right.knobs)):
                if left.knobs.get(knob) != right.knobs.get(knob):
                    values = _shown(left.knobs.get(knob)), _shown(right.knobs.get(knob))
                    found.append(Difference(f"{name}.{knob}", *values, True))
            if left.artefact != right.artefact:
                found.append(Difference(f"{name}.artefact", left.artefact or "none", right.artefact or "none", True))
        return tuple(found)


def _shown(value: object) -> str:
    return "absent" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@lru_cache(maxsize=4096)
def setting_of(text: str) -> Setting:
    """Setting in a database row, JSON. Cached: takes share settings, so long histories open quickly."""
    return Setting.from_json(parsed_json(text))
