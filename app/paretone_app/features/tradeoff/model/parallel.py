"""Points on parallel axes, one for each knob and each figure that differs among them: every point is a line across. A
range brushed on an axis filters the points. Free of Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from paretone_app.features.tradeoff.model.axes import TradeoffAxis, said
from paretone_app.features.tradeoff.model.filtering import Filter, Range
from paretone_app.features.tradeoff.model.scene import Pool
from paretone_app.numbers import counted
from paretone_app.results.points import Point

DRAWN = 2000
"""Lines beyond which more cannot be told apart."""
_ROOM = 0.02
"""Room at both ends of an axis, as a share of it, so that a brush can begin beyond the outermost value."""


@dataclass(frozen=True)
class Parallel:
    """What is drawn: ``points`` that pass the filter but for its ranges, and which of them are ``inside`` those."""

    axes: tuple[TradeoffAxis, ...] = ()
    ends: np.ndarray = field(default_factory=lambda: np.empty((0, 2)), repr=False)
    """(axes, 2): lowest and highest value, with some room."""
    points: tuple[Point, ...] = ()
    values: np.ndarray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    """(points, axes), NaN where a point has none."""
    inside: np.ndarray = field(default_factory=lambda: np.empty(0, bool), repr=False)
    ranges: tuple[Range, ...] = ()

    @cached_property
    def heights(self) -> np.ndarray:
        """(points, axes): places on the axes, 0 at the low end and 1 at the high one."""
        low, high = self.ends.T
        return (self.values - low) / (high - low)

    def range_of(self, axis: int) -> Range | None:
        """What is brushed on the axis of this number."""
        return next((one for one in self.ranges if one.axis == self.axes[axis].name), None)

    def brushed(self, axis: int, low: float, high: float) -> tuple[Range, ...]:
        """The ranges with another on the axis of this number, whose ends may be in any order; none if it is empty."""
        name = self.axes[axis].name
        others = tuple(one for one in self.ranges if one.axis != name)
        return others if low == high else (*others, Range(name, min(low, high), max(low, high)))

    def in_words(self, axis: int) -> str:
        """An axis with what is brushed on it, as sentences."""
        column, brush = self.values[:, axis], self.range_of(axis)
        text = f"{self.axes[axis].label(False)}, {said(float(np.nanmin(column)))} to {said(float(np.nanmax(column)))}."
        if brush is not None:
            text += f" Brushed from {said(brush.low)} to {said(brush.high)}."
        kept, total = int(self.inside.sum()), len(self.points)
        return f"{text} {kept} of {counted(total, 'point', 'points')} in all ranges."


def parallel(pool: Pool, chosen: Filter) -> Parallel:
    """Own points of ``pool`` that pass ``chosen``, on every axis on which they differ: knobs first, then figures."""
    places = np.flatnonzero(pool.wanted(replace(chosen, ranges=())) & pool.own)
    axes: list[TradeoffAxis] = []
    columns: list[np.ndarray] = []
    for one in sorted(pool.axes, key=lambda one: not one.knob):
        column = pool.values(one, False)[places, 0]
        known = column[~np.isnan(column)]
        if len(known) and known.max() > known.min():
            axes.append(one)
            columns.append(column)
    values = np.stack(columns, axis=1) if columns else np.empty((len(places), 0))
    return Parallel(
        tuple(axes),
        _ends(values),
        tuple(pool.points[place] for place in places),
        values,
        pool.wanted(chosen)[places],
        tuple(one for one in chosen.ranges if one.axis in {axis.name for axis in axes}),
    )


def _ends(values: np.ndarray) -> np.ndarray:
    if not values.size:
        return np.empty((values.shape[1], 2))
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    room = _ROOM * (high - low)
    return np.stack([low - room, high + room], axis=1)


def nearest(heights: np.ndarray, inside: Sequence[bool] | np.ndarray, at: float, height: float) -> tuple[int, float]:
    """The line, of those ``inside``, that is nearest to ``height`` (0 to 1) at the place ``at`` between axes, such as
    1.5 halfway from the second axis to the third; and how far it is. −1 if there is none."""
    left = int(np.clip(np.floor(at), 0, max(heights.shape[1] - 2, 0)))
    right = min(left + 1, heights.shape[1] - 1)
    share = min(max(at - left, 0.0), 1.0)
    far = np.abs((1 - share) * heights[:, left] + share * heights[:, right] - height)
    far = np.where(np.isnan(far) | ~np.asarray(inside, bool), np.inf, far)
    index = int(far.argmin()) if len(far) else -1
    return (index, float(far[index])) if index >= 0 and np.isfinite(far[index]) else (-1, float("inf"))


def sampled(places: np.ndarray) -> list[int]:
    """``places``, or :data:`DRAWN` of them, evenly."""
    if len(places) > DRAWN:
        places = places[np.linspace(0, len(places) - 1, DRAWN).astype(int)]
    return places.tolist()
