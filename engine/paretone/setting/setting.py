"""A setting: one point of the trade-off space, as a value that can be hashed, compared, stored and sent."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

from paretone.errors import SettingError
from paretone.fields import exact, is_of
from paretone.reading import parsed_json, shown
from paretone.setting.knobs import NO_VALUES, Values


class Artefact(Protocol):
    """Result of preparing a technique that synthesis needs, such as a strategy table. Immutable and picklable."""

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digits that are equal for artefacts that act alike; settings name artefacts by them."""


_FIELDS = {"model": str, "options": dict, "techniques": list, "seed": int}
_TECHNIQUE_FIELDS = {"technique": str, "knobs": dict, "artefact": str}
"""Fields of settings and of their entries in files."""


LARGEST_SEED = 2**63 - 1
"""The largest one that every generator and every file takes."""


def checked_seed(value: object, name: str = "seed") -> int:
    """``value`` as a seed. Raises :class:`SettingError` that calls it ``name`` unless it is a whole number from 0 to
    2**63 - 1."""
    if not is_of(value, int) or not 0 <= value <= LARGEST_SEED:
        raise SettingError(f"{name} must be a whole number between 0 and 2**63 - 1, not {shown(value)}.")
    return value


@dataclass(frozen=True)
class UsedTechnique:
    """A technique that takes part in a setting, with its knob values.

    ``artefact`` is the fingerprint of what preparing the technique yielded (a strategy table, say), or ``""``.
    """

    technique: str
    knobs: Values = NO_VALUES
    artefact: str = ""


@dataclass(frozen=True)
class Difference:
    """One difference of two settings; ``technique``: whether it is one of techniques."""

    what: str
    left: str
    right: str
    technique: bool


@dataclass(frozen=True)
class Setting:
    """Model, sampler options, techniques in use and seed. ``options`` are the model family's own knobs."""

    model: str
    options: Values = NO_VALUES
    techniques: tuple[UsedTechnique, ...] = field(default=())
    seed: int = 0

    def technique(self, name: str) -> UsedTechnique | None:
        """The technique with its knobs, or ``None`` when it is not used."""
        return next((entry for entry in self.techniques if entry.technique == name), None)

    def with_technique(self, entry: UsedTechnique) -> Setting:
        """A copy in which ``entry`` is used, in place of an earlier entry of the same technique."""
        others = tuple(other for other in self.techniques if other.technique != entry.technique)
        return replace(self, techniques=tuple(sorted((*others, entry), key=lambda one: one.technique)))

    def without(self, technique: str) -> Setting:
        """A copy in which ``technique`` is not used."""
        return replace(self, techniques=tuple(one for one in self.techniques if one.technique != technique))

    @property
    def baseline(self) -> Setting:
        """The same setting with no technique in use."""
        return replace(self, techniques=())

    @property
    def bare(self) -> Setting:
        """The same without seed and artefacts, as in studies, which prepare artefacts themselves."""
        return replace(self, seed=0, techniques=tuple(replace(one, artefact="") for one in self.techniques))

    def to_json(self) -> dict:
        """Plain JSON values; :meth:`from_json` reads them back."""
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
        """Read what :meth:`to_json` wrote. Raises :class:`SettingError` that names the field at fault."""
        fields = exact(data, "setting", _FIELDS, SettingError)
        techniques = []
        for index, entry in enumerate(fields["techniques"]):
            one = exact(entry, f"setting.techniques[{index}]", _TECHNIQUE_FIELDS, SettingError)
            techniques.append(UsedTechnique(one["technique"], Values(one["knobs"]), one["artefact"]))
        return cls(fields["model"], Values(fields["options"]), tuple(techniques), fields["seed"])

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are equal for equal settings."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, other: Setting) -> tuple[Difference, ...]:
        """Everything in which ``other`` differs, differences of technique last."""
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
    """The setting that a row of a database holds, as JSON. Takes share theirs: reading each only once makes long
    histories open quickly."""
    return Setting.from_json(parsed_json(text))
