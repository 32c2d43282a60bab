"""A scatter plot in a frame: front, levels, intervals, points and labels, layer by layer."""

import itertools
from collections.abc import Collection, Iterable
from functools import partial

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QBrush, QColor

from paretone.figures.scatter import Dimension, Scatter
from paretone_app.plotting.chart import EVERYTHING, Sections
from paretone_app.plotting.frame import Frame, Shape, Shapes, StaticLayers, pen
from paretone_app.plotting.points import Points, Whiskers
from paretone_app.plotting.words import Label, Labels, next_to
from paretone_app.shell.theme import SMALL

_RADIUS, _SMALL_RADIUS = 0.36, 0.22
"""In font heights."""
MANY = 400
_NAMES = 40
"""Maximum number of labelled points."""
_RIM = 0.5
"""Pixels by which a point may lie outside the section."""


class ScatterLayers:
    """Draws one :class:`Scatter`, or a section of it, and finds points. Positions are pixels of the frame."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.shown = Scatter(Dimension(""), Dimension(""))
        self.wholes = self.shown.scales()
        """Scales of the X axis and the Y axis that show everything."""
        still = StaticLayers(frame, 1)
        self._front, self._lines = Shapes(frame, 1, still), Shapes(frame, 2, still)
        self.whiskers, self._points = Whiskers(frame, 3, still), Points(frame, 4, still)
        self.names = Labels(frame, 5, still, share=SMALL)
        self.names.labels, self.names.covers, self.names.taken = self._labels, self._covers, self._steps
        frame.changed.connect(self._locate)
        self.px = self.py = np.empty((0,))
        self.inside = np.empty(0, bool)
        """Which points lie in the section."""
        self.radius = 0.0
        self._struck = np.empty((0, 4))
        """Intervals that no label may lie on."""

    def show(self, shown: Scatter, sections: Sections = EVERYTHING) -> None:
        self.shown, self.wholes = shown, shown.scales()
        for axis, along in ((self.frame.bottom, shown.x), (self.frame.left, shown.y)):
            axis.set_title(along)
        self._points.across, self._points.up = shown.across[:, 0], shown.up[:, 0]
        self._points.glyphs, self._points.doubtful = shown.glyphs, frozenset(shown.doubtful)
        self.whiskers.across, self.whiskers.up = shown.across, shown.up
        self.whiskers.colours = [one.colours[0] for one in shown.glyphs]
        self.whiskers.setVisible(shown.intervals)
        self.show_sections(sections)
        self.highlight(None)

    def show_sections(self, sections: Sections) -> None:
        across, up = (one or whole for one, whole in zip(sections, self.wholes, strict=True))
        shown, colours = self.shown, self.frame.colours
        tint, edge_tint, faint = QColor(colours.accent), QColor(colours.accent), QColor(colours.muted)
        for colour, alpha in ((tint, 16), (edge_tint, 170), (faint, 110)):
            colour.setAlpha(alpha)
        edge, ground = shown.edge(across, up)
        strands, level = pen(faint, 1.0, Qt.PenStyle.DotLine), pen(colours.muted, 1.2, Qt.PenStyle.DashLine)
        outline = Shape.through(edge, pen(edge_tint, 1.6))
        self._front.shapes = [Shape.through(ground, fill=QBrush(tint)), outline] if edge else []
        self._lines.shapes = [
            *(Shape((x, x), (up.low, up.high), level) for x in shown.x.levels),
            *(Shape((across.low, across.high), (y, y), level) for y in shown.y.levels),
            *(Shape(shown.across[list(one), 0], shown.up[list(one), 0], strands) for one in shown.strands),
        ]
        self.frame.set_scales(across, up)

    def highlight(self, bright: Collection[int] | None) -> None:
        """Dim all points but ``bright``; ``None`` dims none."""
        rank = np.zeros(len(self.shown.glyphs), int)
        # Front above dominated points, chosen points above all.
        rank[list(self.shown.front)] = 1
        rank[list(bright or ())] += 2
        self._points.order = np.argsort(rank, kind="stable")
        self._points.dim = 0 if bright is None else int((rank < 2).sum())
        self._points.redraw()

    def _locate(self) -> None:
        shown, area = self.shown, self.frame.area
        self.radius = self.frame.em * (_SMALL_RADIUS if len(shown.glyphs) > MANY else _RADIUS)
        self._points.radius = self.whiskers.hidden = self.radius
        self.px, self.py = self.frame.to_x(shown.across[:, 0]), self.frame.to_y(shown.up[:, 0])
        self.inside = (self.px >= area.left() - _RIM) & (self.px <= area.right() + _RIM)
        self.inside &= (self.py >= area.top() - _RIM) & (self.py <= area.bottom() + _RIM)
        self._struck = self.whiskers.lines[1] if shown.intervals else np.empty((0, 4))

    def place(self, index: int) -> QPointF:
        return QPointF(self.px[index], self.py[index])

    def nearest(self, place: QPointF) -> int | None:
        """The point at ``place``, if any; the topmost of several."""
        if not len(self.px):
            return None
        far = np.hypot(self.px - place.x(), self.py - place.y())
        far[~self.inside] = np.inf
        index = int(len(far) - 1 - np.argmin(far[::-1]))
        return index if far[index] <= self.radius + 0.35 * self.frame.em else None

    def within(self, box: QRectF) -> np.ndarray:
        within = (self.px >= box.left()) & (self.px <= box.right())
        within &= (self.py >= box.top()) & (self.py <= box.bottom())
        return np.flatnonzero(within & self.inside)

    def _labels(self) -> list[Label]:
        """Labels of levels, and of points if they are few."""
        colours, area = self.frame.colours, self.frame.area
        found = [
            Label(self.shown.level_title, colours.muted, partial(_along, area, at, level), True)
            for level, places in (
                (False, self.frame.to_x(self.shown.x.levels)),
                (True, self.frame.to_y(self.shown.y.levels)),
            )
            for at in places.tolist()
        ]
        named = [index for index, text in enumerate(self.shown.labels) if text and self.inside[index]]
        if len(named) > _NAMES:
            return found
        away = self.radius + 0.5 * self.frame.em  # Beyond the ring around a chosen point.
        for index in sorted(named, key=lambda one: self.px[one]):
            place = self.place(index)
            found.append(Label(self.shown.labels[index], colours.muted, partial(next_to, place, away)))
        return found

    def _covers(self, spot: QRectF) -> bool:
        room, middle = 1.1 * self.radius, spot.center()
        across = np.abs(self.px - middle.x()) < spot.width() / 2 + room
        if (across & (np.abs(self.py - middle.y()) < spot.height() / 2 + room)).any():
            return True
        left, top, right, bottom = self._struck.T
        beside = (left > spot.right() + 1) | (right < spot.left() - 1)
        return bool((~beside & (top < spot.bottom() + 1) & (bottom > spot.top() - 1)).any())

    def _steps(self) -> list[QRectF]:
        """Rectangles along the front's line."""
        edge, _ = self.shown.edge(self.frame.across, self.frame.up)
        corners = [self.frame.place(x, y) for x, y in edge]
        return [QRectF(one, other).normalized() for one, other in itertools.pairwise(corners)]


def _along(area: QRectF, at: float, level: bool, size: QSizeF) -> Iterable[QRectF]:
    """Positions for a label along a line through the whole area."""
    width, height = size.width(), size.height()
    if level:
        lefts: Iterable[float] = np.arange(area.right() - width - 2, area.left(), -width / 2).tolist()
        tops: Iterable[float] = (at - height - 3, at + 3)
    else:
        lefts, tops = (at + 3, at - 3 - width), np.arange(area.top(), area.bottom() - height, height).tolist()
    for top in tops:
        for left in lefts:
            yield QRectF(left, top, width, height)
