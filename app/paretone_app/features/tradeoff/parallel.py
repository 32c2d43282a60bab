"""Parallel axes: points by all figures and knobs, and a study within the brushed ranges. No Qt."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress

import numpy as np

from paretone.errors import SettingError
from paretone.measure.metrics import METRICS, NEITHER
from paretone.models import catalogue
from paretone.setting.setting import Setting
from paretone.techniques import technique
from paretone_app.features.studies.forms import Bound, Span, Within
from paretone_app.features.tradeoff.axes import KNOB_AXES, TradeoffAxis, knob_value
from paretone_app.features.tradeoff.scene import Filter, Pool, Range
from paretone_app.numbers import counted
from paretone_app.results.points import Point

DRAWN = 2000
"""Most lines drawn; more are indistinguishable."""


@dataclass(frozen=True)
class Parallel:
    """Drawn data: ``points`` that pass the filter without its ranges, and a mask of those ``inside`` the ranges."""

    axes: tuple[TradeoffAxis, ...] = ()
    ends: np.ndarray = field(default_factory=lambda: np.empty((0, 2)), repr=False)
    """(axes, 2): lowest and highest value, with a margin."""
    points: tuple[Point, ...] = ()
    values: np.ndarray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    """(points, axes); NaN if missing."""
    inside: np.ndarray = field(default_factory=lambda: np.empty(0, bool), repr=False)
    ranges: tuple[Range, ...] = ()

    @cached_property
    def heights(self) -> np.ndarray:
        """(points, axes): positions on the axes, 0 at the low end and 1 at the high end."""
        low, high = self.ends.T
        return (self.values - low) / (high - low)

    def range_of(self, axis: int) -> Range | None:
        return next((one for one in self.ranges if one.axis == self.axes[axis].name), None)

    def brush(self, axis: int) -> tuple[float, float] | None:
        """Heights of the brushed range's ends; 0 to 1 within the axis."""
        brush, (low, high) = self.range_of(axis), self.ends[axis].tolist()
        return None if brush is None else ((brush.low - low) / (high - low), (brush.high - low) / (high - low))

    def brushed(self, axis: int, low: float, high: float) -> tuple[Range, ...]:
        """The ranges with the one on this axis replaced, ends in any order; removed if empty."""
        name = self.axes[axis].name
        others = tuple(one for one in self.ranges if one.axis != name)
        return others if low == high else (*others, Range(name, min(low, high), max(low, high)))

    def in_words(self, axis: int) -> str:
        """An axis and its brushed range, as sentences."""
        one, column, brush = self.axes[axis], self.values[:, axis], self.range_of(axis)
        text = f"{one.label}, {one.spelt(float(np.nanmin(column)))} to {one.spelt(float(np.nanmax(column)))}."
        if brush is not None:
            text += f" Brushed from {one.spelt(brush.low)} to {one.spelt(brush.high)}."
        kept, total = int(self.inside.sum()), len(self.points)
        return f"{text} {kept} of {counted(total, 'point', 'points')} in all ranges."


def parallel(pool: Pool, chosen: Filter) -> Parallel:
    """Own points of ``pool`` that pass ``chosen``, on every axis where they differ: knobs first, then figures."""
    places = np.flatnonzero(pool.wanted(replace(chosen, ranges=())) & pool.own)
    columns = {}
    for one in sorted(pool.axes, key=lambda one: not one.knob):
        column = pool.values(one)[places, 0]
        known = column[~np.isnan(column)]
        if len(known) and known.max() > known.min():
            columns[one] = column
    values = np.stack(list(columns.values()), axis=1) if columns else np.empty((len(places), 0))
    low, high = np.nanmin(values, axis=0, initial=np.inf), np.nanmax(values, axis=0, initial=-np.inf)
    # A margin, so that a brush can start beyond the extremes.
    room = 0.02 * (high - low)
    names = {axis.name for axis in columns}
    return Parallel(
        tuple(columns),
        np.stack([low - room, high + room], axis=1),
        tuple(pool.points[place] for place in places),
        values,
        pool.wanted(chosen)[places],
        tuple(one for one in chosen.ranges if one.axis in names),
    )


def nearest(heights: np.ndarray, inside: Sequence[bool] | np.ndarray, at: float, height: float) -> tuple[int, float]:
    """The nearest line among those ``inside`` to ``height`` (0 to 1) at position ``at`` between axes (1.5 is halfway
    from the second axis to the third), and its distance. −1 if there is none."""
    left = int(np.clip(np.floor(at), 0, max(heights.shape[1] - 2, 0)))
    right = min(left + 1, heights.shape[1] - 1)
    share = min(max(at - left, 0.0), 1.0)
    far = np.abs((1 - share) * heights[:, left] + share * heights[:, right] - height)
    far = np.where(np.isnan(far) | ~np.asarray(inside, bool), np.inf, far)
    index = int(far.argmin()) if len(far) else -1
    return (index, float(far[index])) if index >= 0 and np.isfinite(far[index]) else (-1, float("inf"))


def sampled(places: np.ndarray) -> list[int]:
    """``places``, thinned evenly to :data:`DRAWN`."""
    if len(places) > DRAWN:
        places = places[np.linspace(0, len(places) - 1, DRAWN).astype(int)]
    return places.tolist()


_BOUNDED = frozenset(one.name for one in METRICS if one.better != NEITHER)  # Figures usable as bounds of a search.


def within(shown: Parallel) -> Within:
    """Study for the points in all ranges: knobs span those points' values, brushed figures are bounds. Raises
    :class:`SettingError` if that makes no study."""
    inside = list(compress(shown.points, shown.inside))
    settings = [one.setting for one in inside if one.setting is not None]
    models = {one.model for one in settings}
    if not shown.ranges or not inside:
        raise SettingError("Brush ranges first: no point lies within." if shown.ranges else "Brush ranges first.")
    if len(models) != 1:
        raise SettingError("The points in all ranges are of several models; choose one above Trade-off.")
    if all(one.id not in models for one in catalogue.models()):
        raise SettingError("The model of these points is not there any more, so no study can be made of it.")
    spans = _spans(settings, {one.axis for one in shown.ranges})
    if not spans:
        raise SettingError("The points in all ranges do not differ in any knob, so there is nothing to vary.")
    bounds = tuple(bound for at, axis in enumerate(shown.axes) for bound in _bounds(shown, at, axis))
    return Within(models.pop(), spans, bounds)


def _spans(settings: Sequence[Setting], brushed: Collection[str]) -> tuple[Span, ...]:
    """The ``brushed`` knobs, or else all in which ``settings`` differ."""
    found = {}
    for axis in KNOB_AXES:
        values = [knob_value(one, axis.technique, axis.knob) for one in settings]
        known = sorted({one for one in values if one is not None})
        without = bool(axis.technique) and any(one.technique(axis.technique) is None for one in settings)
        first = bool(axis.technique) and technique(axis.technique).knobs[0].name == axis.knob
        if len(known) > 1 or (known and without and first):
            found[axis.name] = Span(axis.technique, axis.knob, tuple(known), without)
    chosen = [span for name, span in found.items() if name in brushed]
    return tuple(chosen or found.values())


def _bounds(shown: Parallel, at: int, axis: TradeoffAxis) -> Iterator[Bound]:
    """Bounds from the ends of a range that exclude points."""
    brush, column = shown.range_of(at), shown.values[:, at]
    if brush is not None and axis.name in _BOUNDED:
        if brush.high < np.nanmax(column):
            yield Bound(axis.name, "at_most", _outwards(brush.high, math.ceil))
        if brush.low > np.nanmin(column):
            yield Bound(axis.name, "at_least", _outwards(brush.low, math.floor))


def _outwards(value: float, rounded: Callable[[float], int]) -> float:
    """``value`` rounded outwards to four digits."""
    if value == 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    return float(f"{rounded(round(value / unit, 6)) * unit:.6g}")
