"""Which part of the trade-off plot is shown: zooming and moving, worked out from where everything is painted."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QPointF

from app.features.tradeoff.painting import Painting, Sections
from engine.figures.scales import Scale


def zoomed(painting: Painting, factor: float, place: QPointF) -> Sections:
    """``factor`` times as much, where what is at ``place`` stays there; beside an axis only that one changes."""
    shares = (min(max(share, 0.0), 1.0) for share in _shares(painting, place))
    scales = zip((painting.across, painting.up), shares, painting.wholes, axes_at(painting, place), strict=True)
    return _sections(
        painting, (scale.zoomed(factor, share, whole) if on else scale for scale, share, whole, on in scales)
    )


def moved(painting: Painting, across: float, up: float) -> Sections:
    """What lies so much of the lengths of the axes further on."""
    scales = zip((painting.across, painting.up), (across, up), painting.wholes, strict=True)
    return _sections(painting, (scale.moved(by, whole) for scale, by, whole in scales))


def with_point(painting: Painting, index: int) -> Sections:
    """As much as now, with a point in it: in the middle of the axes along which it lies beyond."""
    shares = _shares(painting, painting.place(index))
    return moved(painting, *(0.0 if 0.0 <= share <= 1.0 else share - 0.5 for share in shares))


def axes_at(painting: Painting, place: QPointF) -> tuple[bool, bool]:
    """Which axes what the mouse does at a place is about: both, or, beside one of them, that one."""
    beneath, beside = place.y() > painting.area.bottom(), place.x() < painting.area.left()
    return beneath or not beside, beside or not beneath


def _shares(painting: Painting, place: QPointF) -> tuple[float, float]:
    area = painting.area
    return (place.x() - area.left()) / area.width(), (area.bottom() - place.y()) / area.height()


def _sections(painting: Painting, scales: Iterable[Scale]) -> Sections:
    return tuple(None if scale == whole else scale for scale, whole in zip(scales, painting.wholes, strict=True))
