"""The trade-off view's plot: points by two figures, the front, and the selection.

Mouse: a click chooses and plays a point, Ctrl-click adds to the selection, dragging a rectangle selects its points;
a double click shows everything. Keys: the feature's ``keys``. Zooming: :mod:`paretone_app.plotting.chart`."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtWidgets import QGraphicsLineItem, QGraphicsRectItem, QToolTip

from paretone.listening.results import HeardFrom
from paretone.models.voices import shown_name
from paretone_app.features.tradeoff.axes import axis
from paretone_app.features.tradeoff.scene import ORIGINS, Filter, Limit, Scene
from paretone_app.features.tradeoff.styles import PointStyles, described, legend
from paretone_app.features.tradeoff.words import counts, plain, remarks, table, tip
from paretone_app.numbers import counted, grouped
from paretone_app.plotting import files
from paretone_app.plotting.chart import EVERYTHING, Sections, Wholes, ZoomChart
from paretone_app.plotting.frame import Frame, Layer, pen
from paretone_app.plotting.points import Badge, Badges, Rings
from paretone_app.plotting.scatter import MANY, ScatterLayers
from paretone_app.plotting.sheet import Sheet
from paretone_app.results.points import STUDY, Point, technique_title
from paretone_app.shell.colours import LIGHT, Colours
from paretone_app.widgets.screen_readers import announce

_OPACITY = 0.12


class HeardBands(Layer):
    """Bands on an X axis of speed-ups: one per staircase, and one for the method of limits with a dotted line."""

    heard: Sequence[HeardFrom] = ()
    limit: Limit | None = None

    def draw(self, painter: QPainter) -> None:
        area, colour = self.frame.area, QColor(self.frame.colours.accelerated)
        shade = QColor(colour)
        shade.setAlphaF(_OPACITY)
        for one in self.heard:
            left = area.left() if one.low == 0.0 else self._x(one.low)
            right = area.right() if math.isinf(one.high) else self._x(one.high)
            painter.fillRect(QRectF(left, area.top(), right - left, area.height()), shade)
            if 0.0 < one.value < math.inf:
                painter.setPen(pen(colour, 1.6, Qt.PenStyle.DashLine))
                painter.drawLine(QLineF(self._x(one.value), area.top(), self._x(one.value), area.bottom()))
        if self.limit is not None:
            muted = QColor(self.frame.colours.muted)
            low, at, high = map(self._x, (self.limit.low, self.limit.value, self.limit.high))
            painter.setPen(pen(muted, 1.6, Qt.PenStyle.DotLine))
            painter.drawLine(QLineF(at, area.top(), at, area.bottom()))
            muted.setAlphaF(_OPACITY)
            painter.fillRect(QRectF(low, area.top(), high - low, area.height()), muted)

    def _x(self, value: float) -> float:
        return float(self.frame.to_x(value))


class PointMarks:
    """Marks over the points placed by ``drawn`` in ``frame``."""

    def __init__(self, frame: Frame, drawn: ScatterLayers) -> None:
        self._frame, self._drawn = frame, drawn
        self._scene = Scene()
        self.letters: dict[str, str] = {}
        self._drops = tuple(QGraphicsLineItem(frame) for _ in range(2))
        for line in self._drops:
            line.setZValue(10)
        self._ring, self._rings, self._hover_ring = (Rings(frame, z) for z in (8, 7, 6))
        self._badges = Badges(frame, 9)
        self._badges.badges = self._badged

    def set_letters(self, letters: Mapping[str, str]) -> None:
        """Set the marks of points (a letter or word), by point key."""
        if dict(letters) != self.letters:
            self.letters = dict(letters)
            self._badges.redraw()

    def show(self, scene: Scene, current: str, selected: Collection[str], hovered: int | None, focused: bool) -> None:
        """Mark the ``current`` point of ``scene``, the ``selected`` ones (keys) and the ``hovered`` one (index)."""
        self._scene = scene
        drawn, colours, index = self._drawn, self._frame.colours, scene.index
        inside, radius = drawn.inside, drawn.radius
        if len(inside) != len(scene.points):
            return  # The frame changes before the new points arrive.
        under = [] if hovered is None else [hovered]
        self._hover_ring.show_rings([(drawn.place(one), radius + 3) for one in under], pen(colours.muted, 1.2))
        several = 1 < len(selected) <= MANY
        ringed = sorted(index[key] for key in selected if inside[index[key]]) if several else []
        self._rings.show_rings([(drawn.place(one), radius + 3) for one in ringed], pen(colours.accent, 1.3))
        at = index.get(current, -1)
        there = at >= 0 and bool(inside[at])
        ring = pen(colours.text, 2.4 if focused else 1.6)
        self._ring.show_rings([(drawn.place(at), radius + 4.5)] if there else [], ring)
        place, area = drawn.place(at) if there else QPointF(), self._frame.area
        ends = QPointF(place.x(), area.bottom()), QPointF(area.left(), place.y())
        for line, end in zip(self._drops, ends, strict=True):
            line.setVisible(there)
            line.setPen(pen(colours.muted, 1.1, Qt.PenStyle.DotLine))
            line.setLine(QLineF(place, end))
        self._badges.radius = radius

    def _badged(self) -> list[Badge]:
        colours = self._frame.colours
        fills = {"A": colours.baseline, "B": colours.accelerated}
        places = ((self._scene.index.get(key), letter) for key, letter in self.letters.items())
        return [
            Badge(letter, fills.get(letter, colours.text), self._drawn.place(at))
            for at, letter in places
            if at is not None and self._drawn.inside[at]
        ]


_HEAR = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_MOVES = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End)
_SIDES = {Qt.Key.Key_A: "A", Qt.Key.Key_B: "B"}
_MARK = Qt.Key.Key_N


class TradeoffPlot(ZoomChart):
    chosen = Signal()
    """The user chose another point, or none: see :attr:`current`."""
    selection_changed = Signal()
    """The user changed the selection: see :attr:`selected`."""
    activated = Signal()
    """Play the current point."""
    side_chosen = Signal(str)
    """Use the current point as ``"A"`` or ``"B"``."""
    marked = Signal()
    """The user marked an audible change at the current point."""

    ideal, least = (36.0, 22.0), (16.0, 9.0)
    saved_alone = False

    def __init__(self, colours: Colours, on_paper: bool = False) -> None:
        super().__init__("Trade-off plot", colours, on_paper=on_paper)
        self.scene = Scene()
        self.frame.left.steady = True
        self.drawn = ScatterLayers(self.frame)
        self._current = ""
        self._selected: frozenset[str] = frozenset()
        self.marks = PointMarks(self.frame, self.drawn)
        self.bands = HeardBands(self.frame, -1)
        self.drags_along = False
        """Whether dragging from a point moves along the front."""
        self._dragging = False
        self.hovered: int | None = None
        self._pressed: QPointF | None = None
        self._adding = False
        self._band = QGraphicsRectItem(self.frame)
        self._band.hide()
        self._band.setZValue(10)
        self.frame.changed.connect(self._mark)

    def show_scene(self, shown: Scene, looks: PointStyles) -> None:
        """Show these points; keep the choice and selection as far as possible."""
        kept = zip(self.sections, self.scene.identity_of_axes, shown.identity_of_axes, strict=True)
        across, up = (section if before == after else None for section, before, after in kept)
        self.sections = across, up
        if looks.colours != self.colours:
            self.set_colours(looks.colours)
        self.scene, self.hovered = shown, None
        self.bands.heard = shown.heard
        self.bands.redraw()
        if self._current not in shown.index:
            self._current = ""
        self._selected &= shown.index.keys()
        self.drawn.show(described(shown, looks), self.sections)
        self._brighten()
        self.refresh()

    def choose(self, key: str) -> None:
        """Make the point ``key`` current and the only selected one; emits no signal."""
        self._current = key if key in self.scene.index else ""
        self._bring_into_view()
        self.select({key} if self._current else ())
        self.refresh()

    def select(self, keys: Collection[str]) -> None:
        """Select shown points; emits no signal."""
        selected = frozenset(keys) & self.scene.index.keys()
        if selected != self._selected:
            self._selected = selected
            self._brighten()

    @property
    def current(self) -> Point | None:
        place = self.scene.index.get(self._current)
        return None if place is None else self.scene.points[place]

    @property
    def selected(self) -> tuple[Point, ...]:
        """From left to right."""
        shown = self.scene
        places = np.array(sorted(shown.index[key] for key in self._selected if key in shown.index), int)
        order = np.lexsort((shown.y[places, 0], shown.x[places, 0]))
        return tuple(shown.points[place] for place in places[order])

    def as_text(self) -> str:
        return table(self.scene, delimiter="\t")

    # --- Selection ----------------------------------------------------------------------------------------------------
    def refresh(self) -> None:
        super().refresh()
        self._mark()

    def _brighten(self) -> None:
        index = self.scene.index
        self.drawn.highlight([index[key] for key in self._selected] if len(self._selected) > 1 else None)
        self._mark()

    def _mark(self) -> None:
        self.marks.show(self.scene, self._current, self._selected, self.hovered, self.hasFocus())

    def _place_focus(self) -> None:
        super()._place_focus()
        self._mark()

    # --- Sections ----------------------------------------------------------------------------------------------------
    @property
    def wholes(self) -> Wholes:
        return self.drawn.wholes

    def draw_section(self) -> None:
        self.hovered = None
        self.drawn.show_sections(self.sections)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.scene.points:
            super().wheelEvent(event)

    def middle(self) -> QPointF:
        """The current point if in view, else the centre."""
        at = self.scene.index.get(self._current)
        return self.frame.area.center() if at is None or not self.drawn.inside[at] else self.drawn.place(at)

    @property
    def in_view(self) -> int:
        pairs = zip(self.scene.points, self.drawn.inside.tolist(), strict=True)
        return sum(inside and not point.published for point, inside in pairs)

    def _bring_into_view(self) -> None:
        at = self.scene.index.get(self._current)
        if at is not None and not self.drawn.inside[at]:
            self.bring_into_view(self.drawn.place(at))

    # --- Navigation ---------------------------------------------------------------------------------------------------
    def cursor_text(self) -> str:
        point, there = self.current, counted(len(self.scene.points), "point", "points")
        several = f" {grouped(len(self._selected))} points are selected." if len(self._selected) > 1 else ""
        words = plain(point, self.scene) if point is not None else f"{there}."
        section = "" if not self.zoomed else f" {self.in_view} of {self.scene.own} points are in view."
        return words + several + section

    def go_to(self, index: int | None, keep: bool = False) -> None:
        """Make a point current; ``keep`` the other selected points."""
        self._current = "" if index is None else self.scene.points[index].key
        alone = frozenset({self._current} if self._current else ())
        selected = self._selected | alone if keep else alone
        if selected != self._selected:
            bright_before, self._selected = len(self._selected) > 1, selected
            if bright_before or len(selected) > 1:
                self._brighten()
            self.selection_changed.emit()
        self._bring_into_view()
        self.refresh()
        announce(self, self.cursor_text())
        self.chosen.emit()

    def walk(self, by: int, all_points: bool = False) -> None:
        """Move ``by`` points along the front, or along all points, stopping at the ends."""
        path = self.scene.across if all_points or not self.scene.walk else self.scene.walk
        if not path:
            return
        here = self.scene.index.get(self._current)
        if here is None:
            at = 0 if by > 0 else len(path) - 1
        elif here in path:
            at = path.index(here) + by
        else:
            # From off the path to the nearest point in that direction.
            at = int(np.searchsorted(self.scene.x[list(path), 0], self.scene.x[here, 0])) - (by < 0)
        self.go_to(path[min(max(at, 0), len(path) - 1)])

    def go_along(self, at: int) -> None:
        """Go to a point of the front, or of all points without a front: 0 is the leftmost, −1 the rightmost."""
        path = self.scene.walk or self.scene.across
        if path:
            self.go_to(path[at])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.begins_move(event):
            return
        if event.button() not in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton):
            super().mousePressEvent(event)
            return
        index = self.drawn.nearest(event.position())
        adding = bool(event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier))
        if event.button() == Qt.MouseButton.RightButton:
            if index is not None and self.scene.points[index].key not in self._selected:
                self.go_to(index)
        elif index is None:
            self._pressed, self._adding = event.position(), adding
        elif adding:
            self._toggle(index)
        else:
            self._dragging = self.drags_along
            self.go_to(index)
            self.activated.emit()

    def _toggle(self, index: int) -> None:
        key = self.scene.points[index].key
        if key in self._selected and len(self._selected) > 1:
            self._selected -= {key}
            self._brighten()
            self.selection_changed.emit()
            self.refresh()
        else:
            self.go_to(index, keep=True)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.drawn.nearest(event.position()) is None:
            self.show_everything()
        else:
            self.mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.goes_on_moving(event):
            return
        self.show_shape(event)
        if self._dragging:
            # Go to the front's point nearest in x.
            walk = list(self.scene.walk)
            near = walk[int(np.abs(self.drawn.px[walk] - event.position().x()).argmin())] if walk else None
            if near is not None and self.scene.points[near].key != self._current:
                self.go_to(near)
            return
        if self._pressed is not None:
            box = QRectF(self._pressed, event.position()).normalized()
            if self._band.isVisible() or max(box.width(), box.height()) > 4.0:
                fill = QColor(self.colours.accent)
                fill.setAlpha(40)
                self._band.setPen(pen(self.colours.accent))
                self._band.setBrush(fill)
                self._band.setRect(box)
                self._band.show()
            return
        index = self.drawn.nearest(event.position())
        if index != self.hovered:
            self.hovered = index
            self._mark()
            text = "" if index is None else tip(self.scene.points[index], self.scene)
            QToolTip.showText(event.globalPosition().toPoint(), text, self)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self.ends_move(event):
            return
        self._dragging = False
        if self._pressed is None or event.button() != Qt.MouseButton.LeftButton:
            super().mouseReleaseEvent(event)
            return
        self._pressed = None
        if not self._band.isVisible():
            if not self._adding:
                self.go_to(None)
            return
        self._band.hide()
        caught = (self.scene.points[index] for index in self.drawn.within(self._band.rect()).tolist())
        found = {one.key for one in caught if not one.published}
        self.take_selection(found | self._selected if self._adding else found)

    def take_selection(self, keys: Collection[str]) -> None:
        """Select these points as by the user, with signals."""
        self._selected = frozenset(keys)
        if self._current not in self._selected:
            self._current = next(iter(self._selected)) if len(self._selected) == 1 else ""
        self._brighten()
        self.refresh()
        self.selection_changed.emit()
        self.chosen.emit()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        if self.hovered is not None:
            self.hovered = None
            self._mark()

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        index = self.drawn.nearest(place)
        if index is None:
            return None
        middle, room = self.drawn.place(index), self.drawn.radius + self.em
        around = QRectF(middle.x() - room, middle.y() - room, 2 * room, 2 * room)
        return tip(self.scene.points[index], self.scene), around

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, modifiers = Qt.Key(event.key()), event.modifiers()
        shifted = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
        if modifiers == Qt.KeyboardModifier.ControlModifier and key == Qt.Key.Key_A:
            self.take_selection({one.key for one in self.scene.points if not one.published})
        elif not _own(event):
            super().keyPressEvent(event)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.walk(1 if key == Qt.Key.Key_Right else -1, all_points=shifted)
        elif key in _MOVES:
            self.go_along(-1 if key == Qt.Key.Key_End else 0)
        elif self.current is None:
            return
        elif key in _HEAR:
            self.activated.emit()
        elif key == _MARK:
            self.marked.emit()
        else:
            self.side_chosen.emit(_SIDES[key])

    def _is_own(self, event: QKeyEvent) -> bool:
        return _own(event) or super()._is_own(event)


def _own(event: QKeyEvent) -> bool:
    """Whether a key moves among points or acts on one."""
    key, modifiers = Qt.Key(event.key()), event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    if modifiers == Qt.KeyboardModifier.ShiftModifier:
        return key in (Qt.Key.Key_Left, Qt.Key.Key_Right)
    return not modifiers and (key in _MOVES or key in _HEAR or key in _SIDES or key == _MARK)


_WIDTH, _HEIGHT = 1100, 620


def write_sheet(shown: Scene, chosen: Filter, path: Path, font: QFont, sections: Sections) -> None:
    """Write the view in the format of ``path``'s suffix: ``.svg``, ``.png``, or ``.csv``, which includes points
    outside the ``sections``. Raises :class:`PlainError` for another suffix, or if the file cannot be written."""
    lines = _origins(shown, chosen, sections != EVERYTHING)
    x, y = (one.label for one in shown.options.axes)
    title = f"{y} against {x}"

    def sheet() -> Sheet:
        plot, looks = TradeoffPlot(LIGHT, on_paper=True), PointStyles(LIGHT)
        plot.show_scene(shown, looks)
        plot.show_sections(sections)
        made = Sheet(_WIDTH, LIGHT, font)
        made.title(title)
        made.charts([plot], _HEIGHT)
        made.legend(tuple(legend(shown, looks)))
        for line in lines:
            made.line(line)
        return made

    kinds = {
        ".svg": lambda: sheet().svg(title, " ".join(lines)),
        ".png": lambda: sheet().png(),
        ".csv": lambda: table(shown).encode(),
    }
    files.write(path, kinds)


def _origins(shown: Scene, chosen: Filter, section: bool) -> list[str]:
    """Description of the figure, in lines."""
    own = [one for one in shown.points if not one.published]
    sources = dict.fromkeys(f"{one.source} ({one.model})" for one in own)
    found = [f"{counts(shown)}. {'; '.join(sources)}. {datetime.now(UTC):%Y-%m-%d}."]
    if any(one.kind == STUDY for one in own) and shown.options.intervals:
        found.append("Lines: 95 % bootstrap intervals over sentences. Step line: Pareto front of the shown points.")
    if any(shown.floors):
        found.append("Dashed: the same judge's score of the reference speech; points beyond it cannot be told apart.")
    if section:
        found.append("A section of the axes; points outside are not drawn.")
    ranges = ((axis(one.axis), one) for one in chosen.ranges)
    filters = {
        **{name: getattr(chosen, name) for name in (*ORIGINS, "words")},
        "voice": shown_name(chosen.voice),
        "ranges": ", ".join(f"{at.title} {at.spelt(one.low)} to {at.spelt(one.high)}" for at, one in ranges),
        "without": ", ".join(technique_title(one) or "baseline" for one in sorted(chosen.hidden)),
    }
    if any(filters.values()):
        found.append(f"Filtered by {'; '.join(f'{name}: {value}' for name, value in filters.items() if value)}.")
    found += remarks(shown)
    found += dict.fromkeys(machine for one in own for machine in one.machines)
    papers = dict.fromkeys(
        f"Published: {one.source}, {one.model} ({one.remarks[1]})" for one in shown.points if one.published
    )
    return [*found, *papers]
