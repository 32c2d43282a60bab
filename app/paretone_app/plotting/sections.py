"""Which part of a frame's axes is shown: zooming and moving."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QPointF

from paretone.figures.scales import Scale
from paretone_app.plotting.frame import Frame

Sections = tuple[Scale | None, Scale | None]
"""The shown part of the X axis and of the Y axis; ``None`` for all."""
EVERYTHING: Sections = (None, None)
Wholes = tuple[Scale, Scale]


def zoomed(frame: Frame, wholes: Wholes, factor: float, place: QPointF) -> Sections:
    """``factor`` times as much, where what is at ``place`` stays there; on an axis, only that one changes."""
    shares = (min(max(share, 0.0), 1.0) for share in _shares(frame, place))
    scales = zip((frame.across, frame.up), shares, wholes, axes_at(frame, place), strict=True)
    return _sections(
        wholes, (scale.zoomed(factor, share, whole) if on else scale for scale, share, whole, on in scales)
    )


def moved(frame: Frame, wholes: Wholes, across: float, up: float) -> Sections:
    """Sections moved by shares of the axes' lengths."""
    scales = zip((frame.across, frame.up), (across, up), wholes, strict=True)
    return _sections(wholes, (scale.moved(by, whole) for scale, by, whole in scales))


def with_place(frame: Frame, wholes: Wholes, place: QPointF) -> Sections:
    """Sections of the same size that contain a place, centred on axes where it was outside."""
    return moved(frame, wholes, *(0.0 if 0.0 <= share <= 1.0 else share - 0.5 for share in _shares(frame, place)))


def axes_at(frame: Frame, place: QPointF) -> tuple[bool, bool]:
    """Axes that the mouse acts on at a place: both, or the one below or left of it."""
    below, left = place.y() > frame.area.bottom(), place.x() < frame.area.left()
    return below or not left, left or not below


def _shares(frame: Frame, place: QPointF) -> tuple[float, float]:
    area = frame.area
    return (place.x() - area.left()) / area.width(), (area.bottom() - place.y()) / area.height()


def _sections(wholes: Wholes, scales: Iterable[Scale]) -> Sections:
    across, up = (None if scale == whole else scale for scale, whole in zip(scales, wholes, strict=True))
    return across, up
