"""A placed grid: times that a search found for one model, guidance and number of evaluations; and the search's request,
reports and result. Torch-free."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import ClassVar

from paretone.errors import ProfileError, SettingError
from paretone.fields import exact, is_of
from paretone.models.base import Utterance
from paretone.reading import shown
from paretone.sampling.grid_search import Trial, rounded
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique

EULER = "Euler"
UNPLACED = ("spacing", "sway")
"""Sampler options that decide where times are, and do not where they are placed."""
_FIELDS = {"belonging": object, "times": list, "solver": str, "origin": str}
"""Fields in a file."""


@dataclass(frozen=True)
class PlacedGrid:
    """Times from 0 (noise) to 1 (speech), one more than steps."""

    compatibility: Compatibility
    """What it was placed for, without the options of the grids that it replaces; see :func:`placed_for`."""
    times: tuple[float, ...]
    solver: str = EULER
    """The solver that it was placed for, in words."""
    origin: str = ""
    """Its search, in words."""

    def __post_init__(self) -> None:
        try:
            rounded(self.times)
        except SettingError as error:
            raise ProfileError(f"The placed grid cannot be used: {error}") from error
        if self.compatibility.steps != self.steps:
            raise ProfileError(
                f"The placed grid has {self.steps} steps, but says that it belongs to {self.compatibility.steps}."
            )

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.times) - 1

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are equal for grids that act equally on the same model."""
        data = self.to_json()
        del data["origin"]
        data["belonging"]["sampling"] = {
            name: value if isinstance(value, str | bool) else float(value)
            for name, value in self.compatibility.sampling.items()
        }
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> dict:
        """Plain JSON values; :meth:`from_json` reads them back."""
        return {
            "belonging": self.compatibility.to_json(),
            "times": list(self.times),
            "solver": self.solver,
            "origin": self.origin,
        }

    @classmethod
    def from_json(cls, data: object, where: str = "placed grid") -> PlacedGrid:
        """Read what :meth:`to_json` wrote. Raises :class:`ProfileError` that names the field at fault."""
        found = exact(data, where, _FIELDS, ProfileError, optional=("origin",))
        times = found["times"]
        if not all(is_of(time, int | float) for time in times):
            raise ProfileError(f"{where}.times must be a list of numbers, not {shown(times)}.")
        compatibility = Compatibility.from_json(found["belonging"], f"{where}.belonging")
        return cls(compatibility, tuple(map(float, times)), found["solver"], found.get("origin", ""))


def placed_for(compatibility: Compatibility, steps: int) -> Compatibility:
    """``compatibility`` as placed grids have it: with their own number of steps, whatever the options make."""
    sampling = {name: value for name, value in compatibility.sampling.items() if name not in UNPLACED}
    return replace(compatibility, sampling=Values(sampling | {"steps": steps}))


def check(grid: PlacedGrid, entry: UsedTechnique, compatibility: Compatibility) -> None:
    """Raise :class:`ProfileError` if the grid, the knobs of ``entry`` and what the profile runs on disagree."""
    said = entry.knobs.get("evaluations", grid.steps)
    if said != grid.steps:
        raise ProfileError(
            f"grid.times have {grid.steps} steps, but setting.techniques says {shown(said)} evaluations."
        )
    mine, theirs = placed_for(compatibility, grid.steps).fields, grid.compatibility.fields
    for name in sorted({*mine, *theirs}):
        if mine.get(name) != theirs.get(name):
            raise ProfileError(
                f"grid.belonging.{name} is {shown(theirs.get(name))}, but this profile's is {shown(mine.get(name))}."
            )


def fixed_knobs(grid: PlacedGrid, knobs: Values) -> Values:
    """``knobs`` with the number of evaluations that the grid has."""
    return knobs.replace(evaluations=grid.steps)


@dataclass(frozen=True)
class SearchRequest:
    """Search times for ``setting``, whose knobs of the technique say how, on all ``utterances`` together. Reports are
    :class:`paretone.sampling.grid_search.Trial`; the result is :class:`Searched`."""

    activity: ClassVar[str] = "searching a grid"

    utterances: tuple[Utterance, ...]
    setting: Setting
    resume: bool = True
    """Whether a search of the same that was interrupted goes on where it was."""


@dataclass(frozen=True)
class Start:
    """A grid that the search started from: one that anybody can have, and how good it is."""

    title: str
    trial: Trial


@dataclass(frozen=True)
class Searched:
    """A finished search."""

    grid: PlacedGrid
    starts: tuple[Start, ...]
    best: Trial
    trials: int
    """Grids that were tried."""
    unit: str
    """What the values are, in words: the first of a value is what was searched by."""
    seconds: float = 0.0
