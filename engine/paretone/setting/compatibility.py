"""Weights that artefacts fit, and replaced weights of bundled models. Torch-free.

Profiles, strategy tables, measured layers, studies and takes store the SHA-256 of their weights. Files made with
replaced weights still open and name the earlier model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paretone.errors import ProfileError
from paretone.fields import exact, is_of
from paretone.paths import resource
from paretone.reading import shown
from paretone.setting.knobs import Knob, Values


@dataclass(frozen=True)
class ReplacedModel:
    model: str
    """Id, shared with its successor."""
    title: str
    voices: tuple[str, ...]


REPLACED: Mapping[str, ReplacedModel] = {
    digest: ReplacedModel(one["model"], one["title"], tuple(one["voices"]))
    for digest, one in json.loads(resource("models", "replaced.json").read_text(encoding="utf-8")).items()
}
"""By the SHA-256 of the weights, hexadecimal."""


def checkpoint_text(fingerprint: str) -> str:
    """Weights in a sentence: the beginning of their SHA-256 in quotes, and the model's name if replaced."""
    replaced = REPLACED.get(fingerprint)
    return f"{fingerprint[:12]!r}{f' (the earlier {replaced.title})' if replaced else ''}"


def are_others(made_with: str, loaded: str) -> bool:
    """Whether the weights differ, by the SHA-256 of both; an unknown one, ``""``, counts as equal."""
    return bool(made_with and loaded) and made_with != loaded


def owner_of_voice(name: str) -> str:
    """Title of the replaced model with the voice ``name``, or ``""``."""
    return next((one.title for one in REPLACED.values() if name in one.voices), "")


def is_replaced(model: str, checkpoint: str, voice: str = "") -> bool:
    """Whether ``model`` now has other weights than when it spoke in ``voice``. ``checkpoint``: SHA-256 of the earlier
    weights; ``""`` for old takes without it, which are recognised by their voice."""
    if checkpoint:
        return checkpoint in REPLACED
    return any(one.model == model and voice in one.voices for one in REPLACED.values())


@dataclass(frozen=True)
class Compatibility:
    """Model, weights and sampling of an artefact."""

    model: str
    fingerprint: str
    """SHA-256 of the weights in use, hexadecimal."""
    variant: str
    sampling: Values
    """Sampler options that shape the trajectory (``Knob.trajectory``), always including ``steps``."""

    @classmethod
    def of(
        cls, model: str, fingerprint: str, variant: str, knobs: Iterable[Knob], options: Mapping[str, object]
    ) -> Compatibility:
        """Compatibility under ``options``, the values of ``knobs``."""
        sampling = Values({knob.name: options[knob.name] for knob in knobs if knob.trajectory})
        return cls(model, fingerprint, variant, sampling)

    @property
    def steps(self) -> int:
        return self.sampling["steps"]

    def fingerprint_of(self, artefact: Mapping[str, object]) -> str:
        """16 hexadecimal digits of an artefact's JSON values without ``origin``: equal for those that act equally."""
        # JSON writers differ in whole numbers; equal values must be equal here.
        sampling = {name: one if isinstance(one, str | bool) else float(one) for name, one in self.sampling.items()}
        acting = {name: value for name, value in artefact.items() if name != "origin"}
        acting["belonging"] = {**self.to_json(), "sampling": sampling}
        return hashlib.sha256(json.dumps(acting, sort_keys=True).encode()).hexdigest()[:16]

    def mismatch(self, other: Compatibility) -> str | None:
        """The first difference of ``other``, as a sentence, or ``None``."""
        pairs: dict[str, tuple[object, object]] = {
            "model": (self.model, other.model),
            "checkpoint": (self.fingerprint, other.fingerprint),
            "architecture variant": (self.variant, other.variant),
        }
        for name in sorted({*self.sampling, *other.sampling}, key=lambda name: (name != "steps", name)):
            pairs[_WORDS.get(name, name)] = self.sampling.get(name), other.sampling.get(name)
        for name, both in pairs.items():
            if both[0] != both[1]:
                mine, theirs = (checkpoint_text(str(one)) if name == "checkpoint" else shown(one) for one in both)
                return f"it belongs to {name} {mine}, but {theirs} is in use"
        return None

    def require_said(self, other: Compatibility, field: str) -> None:
        """Raise :class:`ProfileError` if ``other``, of the artefact in this ``field`` of a profile, differs. Unknown
        weights, those of the flow after a language model, are compared when the profile runs."""
        mine, theirs = (
            {"model": one.model, "fingerprint": one.fingerprint, "variant": one.variant}
            | {f"sampling.{name}": value for name, value in one.sampling.items()}
            for one in (self, other)
        )
        for name in sorted({*mine, *theirs} - ({"fingerprint"} if not self.fingerprint else set())):
            if mine.get(name) != theirs.get(name):
                raise ProfileError(
                    f"{field}.belonging.{name} is {shown(theirs.get(name))}, but this profile's is "
                    f"{shown(mine.get(name))}."
                )

    def to_json(self) -> dict:
        return vars(self) | {"sampling": dict(self.sampling)}

    @classmethod
    def from_json(cls, data: object, where: str) -> Compatibility:
        """Inverse of :meth:`to_json`. Raises :class:`ProfileError` with ``where`` and the field at fault."""
        kinds = {"model": str, "fingerprint": str, "variant": str, "sampling": dict[str, bool | float | str]}
        found = exact(data, where, kinds, ProfileError)
        sampling = found["sampling"]
        if "steps" not in sampling:
            raise ProfileError(f"{where}.sampling lacks the field 'steps'.")
        steps = sampling["steps"]
        if not is_of(steps, int):
            raise ProfileError(f"{where}.sampling.steps must be of type int, not {shown(steps)}.")
        if steps < 1:
            raise ProfileError(f"{where}.sampling.steps must be at least 1, not {steps}.")
        return cls(**{**found, "sampling": Values(sampling)})


_WORDS = {
    "steps": "number of steps",
    "spacing": "step grid",
    "sway": "sway coefficient",
    "guidance": "guidance strength",
}
"""Sampler options in words, if their names are not words."""
