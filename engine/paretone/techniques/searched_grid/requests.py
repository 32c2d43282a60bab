"""The search's request, reports and result. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paretone.models.base import Utterance
from paretone.sampling.grid_search import Trial
from paretone.setting.setting import Setting
from paretone.techniques.searched_grid.grid import PlacedGrid


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
