"""From what is brushed on parallel axes to a study within these ranges. Free of Qt."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from paretone.errors import SettingError
from paretone.measure.metrics import METRICS, NEITHER
from paretone.models import catalogue
from paretone.setting.setting import Setting
from paretone.techniques import technique
from paretone_app.features.studies.forms import Bound
from paretone_app.features.studies.within import Span, Within
from paretone_app.features.tradeoff.model.axes import KNOB_AXES, TradeoffAxis, knob_value
from paretone_app.features.tradeoff.model.filtering import Range
from paretone_app.features.tradeoff.model.parallel import Parallel

_BOUNDED = frozenset(one.name for one in METRICS if one.better != NEITHER)
"""Figures that searches can keep within bounds."""


def within(shown: Parallel) -> Within:
    """The study of the model of the points in all ranges: knobs vary as far as those points do, and the brushed figures
    stay within their ranges. Raises :class:`SettingError` where that is no study."""
    inside = [point for point, is_in in zip(shown.points, shown.inside, strict=True) if is_in]
    models = {one.setting.model for one in inside if one.setting is not None}
    if not shown.ranges or not inside:
        raise SettingError("Brush ranges first: no point lies within." if shown.ranges else "Brush ranges first.")
    if len(models) != 1:
        raise SettingError("The points in all ranges are of several models; choose one above Trade-off.")
    if all(one.id not in models for one in catalogue.MODELS):
        raise SettingError("The model of these points is not there any more, so no study can be made of it.")
    settings = [one.setting for one in inside if one.setting is not None]
    spans = _spans(settings, {one.axis for one in shown.ranges})
    if not spans:
        raise SettingError("The points in all ranges do not differ in any knob, so there is nothing to vary.")
    bounds = tuple(bound for at, axis in enumerate(shown.axes) for bound in _bounds(shown, at, axis))
    return Within(models.pop(), spans, bounds)


def _spans(settings: Sequence[Setting], brushed: Collection[str]) -> tuple[Span, ...]:
    """The knobs that are ``brushed``, or else all in which ``settings`` differ."""
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
    """The ends of a figure's range that leave something out."""
    brush: Range | None = shown.range_of(at)
    if brush is None or axis.name not in _BOUNDED:
        return
    column = shown.values[:, at]
    if brush.high < np.nanmax(column):
        yield Bound(axis.name, "at_most", _outwards(brush.high, math.ceil))
    if brush.low > np.nanmin(column):
        yield Bound(axis.name, "at_least", _outwards(brush.low, math.floor))


def _outwards(value: float, rounded: Callable[[float], int]) -> float:
    """Four digits of ``value``, away from what lies within."""
    if value == 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    return float(f"{rounded(round(value / unit, 6)) * unit:.6g}")
