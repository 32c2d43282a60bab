"""The method of limits: who walks along the front says where a difference begins to be heard, and where it ends.

It is quick, and not blind: the listener knows which way leads to faster settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paretone_app.features.tradeoff.model.axes import TradeoffAxis, said
from paretone_app.features.tradeoff.model.scene import Scene
from paretone_app.numbers import counted


@dataclass(frozen=True)
class Crossing:
    """A step from one point of the front to the next one, after which the listener heard otherwise than before."""

    before: str
    """Key of the point."""
    after: str
    heard: bool
    """Now it is heard, on the way to faster settings; no longer, on the way back."""


@dataclass(frozen=True)
class Limit:
    """From where on the X axis a difference is heard: the mean of the crossings, the first of them and the last."""

    value: float
    low: float
    high: float
    crossings: int


def limit(crossings: Sequence[Crossing], shown: Scene) -> Limit | None:
    """Of the crossings both of whose points are ``shown``, each halfway between them; ``None`` if there is none.

    Means are geometric where all values are above 0, as those of speed-ups are.
    """
    pairs = [(shown.index.get(one.before), shown.index.get(one.after)) for one in crossings]
    ends = np.array([pair for pair in pairs if None not in pair], int).reshape(-1, 2)
    if not len(ends):
        return None
    values = shown.x[ends, 0]
    if geometric := bool((values > 0).all()):
        values = np.log(values)
    middles = values.mean(1)
    found = [float(one) for one in (middles.mean(), middles.min(), middles.max())]
    value, low, high = map(math.exp, found) if geometric else found
    return Limit(value, low, high, len(ends))


def _at(value: float, axis: TradeoffAxis, unit: str) -> str:
    return f"{said(value)}×" if unit == "times" else f"{axis.title} {said(value, unit)}"


def in_words(one: Limit, shown: Scene) -> str:
    """A sentence."""
    axis = shown.options.axes[0]
    unit = "" if shown.options.ratios and axis.takes_ratios else axis.unit
    several = f", {said(one.low)} to {said(one.high)}" if one.high > one.low else ""
    marks = counted(one.crossings, "mark", "marks")
    return f"Difference heard from {_at(one.value, axis, unit)} ({marks}{several}): quick, and not blind."
