"""Marks in the trade-off plot: rings around points, lines from the current one to its figures, letters of takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QGraphicsLineItem

from paretone_app.features.tradeoff.model.scene import Scene
from paretone_app.plotting.frame import Frame, pen
from paretone_app.plotting.points import Badge, Badges, Rings
from paretone_app.plotting.scatter import MANY, ScatterLayers


class PointMarks:
    """Marks over the points that ``drawn`` has placed in ``frame``."""

    def __init__(self, frame: Frame, drawn: ScatterLayers) -> None:
        self._frame, self._drawn = frame, drawn
        self._scene = Scene()
        self.letters: dict[str, str] = {}
        """By the keys of their points."""
        self._drops = tuple(QGraphicsLineItem(frame) for _ in range(2))
        for line in self._drops:
            line.setZValue(10)
        self._ring, self._rings, self._hover_ring = (Rings(frame, z) for z in (8, 7, 6))
        self._badges = Badges(frame, 9)
        self._badges.badges = self._badged

    def set_letters(self, letters: Mapping[str, str]) -> None:
        """Marks of points, in a letter or a word, by their keys."""
        if dict(letters) != self.letters:
            self.letters = dict(letters)
            self._badges.redraw()

    def show(self, scene: Scene, current: str, selected: Collection[str], hovered: int | None, focused: bool) -> None:
        """Mark the ``current`` point of ``scene`` and the ``selected`` ones, by their keys, and the ``hovered`` one, by
        its place."""
        self._scene = scene
        drawn, colours, index = self._drawn, self._frame.colours, scene.index
        inside, radius = drawn.inside, drawn.radius
        if len(inside) != len(scene.points):
            return  # The frame changes while other points come.
        under = [] if hovered is None else [hovered]
        self._hover_ring.show_rings([(drawn.place(one), radius + 3) for one in under], pen(colours.muted, 1.2))
        several = 1 < len(selected) <= MANY
        ringed = sorted(index[key] for key in selected if inside[index[key]]) if several else []
        self._rings.show_rings([(drawn.place(one), radius + 3) for one in ringed], pen(colours.accent, 1.3))
        at = index.get(current, -1)
        there = at >= 0 and bool(inside[at])
        ring = pen(colours.text, 2.4 if focused else 1.6)
        self._ring.show_rings([(drawn.place(at), radius + 4.5)] if there else [], ring)
        area = self._frame.area
        for line, towards in zip(self._drops, ((0.0, 1.0), (1.0, 0.0)), strict=True):
            line.setVisible(there)
            if there:
                place = drawn.place(at)
                end = QPointF(place.x(), area.bottom()) if towards[1] else QPointF(area.left(), place.y())
                line.setPen(pen(colours.muted, 1.1, Qt.PenStyle.DotLine))
                line.setLine(place.x(), place.y(), end.x(), end.y())
        self._badges.radius = radius

    def _badged(self) -> list[Badge]:
        """Letters of the points that are in view."""
        colours = self._frame.colours
        fills = {"A": colours.baseline, "B": colours.accelerated}
        places = ((self._scene.index.get(key), letter) for key, letter in self.letters.items())
        return [
            Badge(letter, fills.get(letter, colours.text), self._drawn.place(at))
            for at, letter in places
            if at is not None and self._drawn.inside[at]
        ]
