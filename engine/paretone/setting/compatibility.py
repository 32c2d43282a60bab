"""Compatibility of an artefact: it can be used only if all of this is equal. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paretone.errors import ProfileError
from paretone.fields import exact, is_of
from paretone.reading import shown
from paretone.setting.editions import checkpoint_text
from paretone.setting.knobs import Knob, Values

_FIELDS = {"model": str, "fingerprint": str, "variant": str, "sampling": dict}
"""Fields in a file."""


@dataclass(frozen=True)
class Compatibility:
    """The model, its weights and the sampling under which an artefact was made."""

    model: str
    fingerprint: str
    """SHA-256 of the weights that run, hexadecimal."""
    variant: str
    sampling: Values
    """The sampler options that shape the trajectory (``Knob.trajectory``); ``steps`` is always among them."""

    @classmethod
    def of(
        cls, model: str, fingerprint: str, variant: str, knobs: Iterable[Knob], options: Mapping[str, object]
    ) -> Compatibility:
        """Compatibility under ``options``, which are those of ``knobs``."""
        sampling = Values({knob.name: options[knob.name] for knob in knobs if knob.trajectory})
        return cls(model, fingerprint, variant, sampling)

    @property
    def steps(self) -> int:
        """Number of steps of the grid."""
        return self.sampling["steps"]

    def mismatch(self, other: Compatibility) -> str | None:
        """The first respect in which ``other`` differs, as a sentence, or ``None``."""
        pairs: dict[str, tuple[object, object]] = {
            "model": (self.model, other.model),
            "checkpoint": (self.fingerprint, other.fingerprint),
            "architecture variant": (self.variant, other.variant),
        }
        for name in sorted({*self.sampling, *other.sampling}, key=lambda name: (name != "steps", name)):
            pairs[_WORDS.get(name, name)] = self.sampling.get(name), other.sampling.get(name)
        different = self.fingerprint != other.fingerprint
        for name, (mine, theirs) in pairs.items():
            if name == "checkpoint" and different:
                both = checkpoint_text(self.fingerprint), checkpoint_text(other.fingerprint)
                return f"it belongs to checkpoint {both[0]}, but {both[1]} is in use"
            if mine != theirs:
                return f"it belongs to {name} {shown(mine)}, but {shown(theirs)} is in use"
        return None

    @property
    def fields(self) -> dict[str, object]:
        """All values by their paths in a file."""
        said: dict[str, object] = {name: getattr(self, name) for name in ("model", "fingerprint", "variant")}
        return said | {f"sampling.{name}": value for name, value in self.sampling.items()}

    def to_json(self) -> dict:
        """Plain JSON values; :meth:`from_json` reads them back."""
        return {
            "model": self.model,
            "fingerprint": self.fingerprint,
            "variant": self.variant,
            "sampling": dict(self.sampling),
        }

    @classmethod
    def from_json(cls, data: object, where: str) -> Compatibility:
        """Read what :meth:`to_json` wrote. Raises :class:`ProfileError` that names ``where`` and the field at fault."""
        found = exact(data, where, _FIELDS, ProfileError)
        sampling = found["sampling"]
        if "steps" not in sampling:
            raise ProfileError(f"{where}.sampling lacks the field 'steps'.")
        for name, value in sampling.items():
            if not isinstance(value, bool | int | float | str):
                raise ProfileError(
                    f"{where}.sampling.{name} must be a number, a text or a truth value, not {shown(value)}."
                )
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
"""Sampler options in words, where their names are not."""
