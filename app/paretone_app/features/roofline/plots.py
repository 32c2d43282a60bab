"""Plots of rooflines: components under the roof, and where the time goes."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from PySide6.QtCore import QLineF, QMarginsF, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QKeyEvent, QMouseEvent, QPen

from paretone.figures.glyphs import Glyph
from paretone.figures.scatter import Dimension, Scale, tick_text
from paretone.measure.roofline.ceilings import Ceilings
from paretone.measure.roofline.report import REST, TITLES, WITHIN_NOISE, Component, Phase, RooflineReport
from paretone_app.numbers import fixed, general, percent, significant, times
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.frame import Block, Blocks, Shape, Shapes, pen
from paretone_app.plotting.points import Points, Rings
from paretone_app.plotting.words import Entry, Label, Labels, Legend, next_to
from paretone_app.shell.colours import Colours
from paretone_app.state.differences import speed_of_b
from paretone_app.state.playing import SIDES

_ROWS_AT_LEAST, _ROW, _ABOVE_AND_BELOW = 6, 1.9, 5.6
"""Minimum number of rows; heights of a row and of title, legend and axis together, in font heights."""
_SAVED = Qt.BrushStyle.Dense6Pattern
"""Pattern of a negative bar: all components together take less time than the sum of each alone."""


class Waterfall(Chart):
    """Measured seconds of every component over all phases, with the floor of each."""

    least = (20.0, 12.0)
    saved_alone = False

    def __init__(self, colours: Colours, on_paper: bool = False) -> None:
        super().__init__("Where the time goes", colours, on_paper=on_paper)
        self._reports: dict[str, RooflineReport | None] = dict.fromkeys(SIDES)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        frame = self.frame
        frame.margins = QMarginsF(0.5, 3.2, 6.8, 2.6)  # On the right there is room for the longest bar's label.
        frame.set_bordered(False)
        frame.bottom.spell = lambda seconds: tick_text(1e3 * seconds)
        self._bars, self._floors = Blocks(frame, 1), Blocks(frame, 2)
        self.legend, self._numbers = Legend(frame, 3), Labels(frame, 4, share=0.85)
        self._numbers.labels = self._labels
        frame.changed.connect(self._place_bars)

    def show_reports(self, reports: dict[str, RooflineReport | None]) -> None:
        self._reports = dict(reports)
        self.updateGeometry()
        self.show_again()

    @property
    def names(self) -> tuple[str, ...]:
        there = {name for _, one in self._measured() for name in one.by_component()}
        return tuple(name for name in TITLES if name in there)

    def _measured(self) -> list[tuple[str, RooflineReport]]:
        return [(side, one) for side, one in self._reports.items() if one is not None]

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(30 * em, round((_ABOVE_AND_BELOW + _ROW * max(_ROWS_AT_LEAST, len(self.names))) * em))

    def describe(self) -> str:
        lines = []
        for side, report in self._measured():
            parts = (f"{TITLES[name]} {milliseconds(one)}" for name, one in report.by_component().items())
            noise = f" ({WITHIN_NOISE})" if report.rest_is_noise else ""
            lines.append(f"{side}: {milliseconds(report.total)}; {', '.join(parts)}{noise}.")
        return "\n".join(lines)

    def cursor_text(self) -> str:
        return self.describe()

    def tip_at(self, _place: QPointF) -> tuple[str, QRectF] | None:
        return self.describe(), QRectF(self.rect())

    def as_text(self) -> str:
        lines = ["side\tcomponent\tseconds\tfloor, seconds"]
        for side, report in self._measured():
            floors = _floors(report)
            for name, seconds in report.by_component().items():
                lines.append(f"{side}\t{TITLES[name]}\t{seconds:.6g}\t{floors.get(name, 0.0):.6g}")
        return "\n".join(lines)

    def show_again(self) -> None:
        names, colours, measured = self.names, self.colours, self._measured()
        compared, legend = "", []
        if len(measured) == len(SIDES) and measured[1][1].measured:
            one, two = (report for _, report in measured)
            alike = (one.text, one.voice, one.ceilings.clock) == (two.text, two.voice, two.ceilings.clock)
            compared = speed_of_b(one.measured / two.measured) if alike else "A and B spoke different sentences"
        words = "Where the time goes"
        self.frame.set_title(*filter(None, [f"{words}: {compared}" if compared else words, compared]))
        for side, report in measured:
            legend.append(Entry(f"{side} {milliseconds(report.total)}", QColor(self._fill(side))))
        if measured:
            legend.append(Entry("the floor", QBrush(QColor(colours.text), Qt.BrushStyle.BDiagPattern)))
            if any(seconds < 0 for _, report in measured for seconds in report.by_component().values()):
                legend.append(Entry("saved, less than 0", QBrush(QColor(colours.text), _SAVED)))
            # The clock's name says seconds; the axis shows milliseconds.
            clock = measured[0][1].ceilings.clock.replace("seconds", "time", 1)
            self.frame.bottom.set_title(Dimension(f"ms ({clock})", "ms"))
        self.legend.entries = legend
        self.frame.left.set_names([(len(names) - 1.0 - row, TITLES[name]) for row, name in enumerate(names)])
        ends = [end for _, report in measured for span in _spans(report).values() for end in span]
        across = Scale(min(ends, default=0.0), max(ends, default=0.0) or 1.0)
        self.frame.set_scales(across, Scale(-0.5, max(len(names), 1) - 0.5))
        self.refresh()

    def refresh(self) -> None:
        super().refresh()
        self._place_bars()

    def _fill(self, side: str) -> str:
        return self.colours.baseline if side == "A" else self.colours.accelerated

    def _bars_of(self) -> Iterator[tuple[str, RooflineReport, str, Block]]:
        """Side, report, component and bar."""
        names, measured = self.names, self._measured()
        step = self.frame.area.height() / max(1, len(names))
        thick = min(0.8 / max(1, len(measured)), 1.1 * self.em / max(step, 1.0))
        gap = 1.5 / max(step, 1.0)
        for number, (side, report) in enumerate(measured):
            for name, span in _spans(report).items():
                top = len(names) - 1 - names.index(name) + thick * (len(measured) / 2 - number)
                colour = QColor(self._fill(side))
                fill, outline = (QBrush(colour, _SAVED), QPen(colour)) if span[1] < span[0] else (colour, None)
                yield side, report, name, Block(span, (top - thick + gap, top), fill, outline)

    def _place_bars(self) -> None:
        hatch = QBrush(QColor(self.colours.base), Qt.BrushStyle.BDiagPattern)
        bars, floors = [], []
        for _, report, name, bar in self._bars_of():
            left, right = sorted(bar.x)
            bars.append(bar)
            if bar.outline is None:
                floors.append(Block((left, min(left + _floors(report).get(name, 0.0), right)), bar.y, hatch))
        self._bars.blocks, self._floors.blocks = bars, floors
        for layer in (self._bars, self._floors, self.legend):
            layer.redraw()

    def _labels(self) -> Iterator[Label]:
        """Time of each component, after its bar, or before it if there is no room after it."""
        for _, report, name, bar in self._bars_of():
            seconds = report.by_component()[name]
            share = seconds / report.total if report.total else 0.0
            words = milliseconds(seconds) + (f", {percent(share)}" if share >= 0.005 else "")
            if name == REST and report.rest_is_noise:
                words = f"{milliseconds(seconds)}, noise"
            elif seconds < 0:
                words = f"{milliseconds(seconds)}: saved"
            where = partial(self._next_to, self._bars.rectangle(bar))
            yield Label(words, self.colours.muted, where, always=True)

    def _next_to(self, bar: QRectF, size: QSizeF) -> Iterable[QRectF]:
        gap, top = 0.25 * self.em, bar.center().y() - size.height() / 2
        after = bar.right() + gap
        if after + size.width() <= self.frame.rect().right():
            yield QRectF(after, top, size.width(), size.height())
        else:
            yield QRectF(bar.left() - gap - size.width(), top, size.width(), size.height())


def milliseconds(seconds: float) -> str:
    """Format a time: in ms below 1 s, else in s."""
    return f"{significant(seconds, 2)} s" if abs(seconds) >= 1 else f"{significant(seconds * 1e3)} ms"


def floor_words(one: Component, ceilings: Ceilings) -> str:
    """Ratio of a component's time to its floor, and whether it is at or below its floor; ``–`` if unknown."""
    if (ratio := one.ratio(ceilings)) is None:
        return "–"
    where = "at the floor" if one.at_floor(ceilings) else "below the floor" if ratio < 1 else ""
    return f"{fixed(ratio, 2)}, {where}" if where else fixed(ratio, 2)


def _spans(report: RooflineReport) -> dict[str, tuple[float, float]]:
    """Begin and end of each component's bar, in seconds, stacked in the order of the titles."""
    found, begin, seconds = {}, 0.0, report.by_component()
    for name in TITLES:
        if name in seconds:
            found[name] = begin, begin + seconds[name]
            begin += seconds[name]
    return found


def _floors(report: RooflineReport) -> dict[str, float]:
    found: dict[str, float] = {}
    for _, one in report.components():
        found[one.name] = found.get(one.name, 0.0) + one.floor(report.ceilings)
    return found


_MOVES = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End)
_SMALLEST, _LARGEST = 0.22, 0.75
"""Smallest and largest radius of a point, in font heights."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))
_SHAPES = {"A": "circle", "B": "square"}
"""Shapes of points, distinguishable without colour."""


@dataclass(frozen=True)
class RooflinePoint:
    side: str
    phase: Phase
    component: Component
    row: int
    """Index among the report's rows."""
    report: RooflineReport = field(repr=False)

    @property
    def intensity(self) -> float:
        return self.component.work.intensity

    @property
    def seconds(self) -> float:
        """Seconds per call; on paper the floor."""
        one = self.component
        return self.report.ceilings.floor(one.work, one.precision) if one.seconds is None else one.seconds

    @property
    def reached(self) -> float:
        return self.component.work.operations / self.seconds


def label(report: RooflineReport, phase: Phase, component: Component) -> str:
    """A component's title, with its phase if other phases have the same component."""
    several = sum(one.name == component.name for _, one in report.components()) > 1
    return f"{component.title} ({phase.title.lower()})" if several else component.title


def rate(value: float) -> str:
    size, unit = next((one for one in _UNITS if value >= one[0]), _UNITS[-1])
    return f"{general(value / size, 3)} {unit}"


class RooflinePlot(Chart):
    """Reports of A and B under the roofs of their machine."""

    chosen = Signal(str, int)
    """A component was chosen: its side, and its row among the report's components."""

    own_keys = _MOVES
    saved_alone = False

    def __init__(self, colours: Colours, on_paper: bool = False) -> None:
        super().__init__("Roofline plot", colours, on_paper=on_paper)
        self._reports: dict[str, RooflineReport | None] = dict.fromkeys(SIDES)
        self.points: tuple[RooflinePoint, ...] = ()
        self._at = -1
        frame = self.frame
        frame.margins = QMarginsF(4.6, 1.9, 1.5, 2.9)
        frame.set_title("Components under their roofs", "Components and roofs")
        frame.bottom.set_title(Dimension("Operations per byte (FLOP/B)"))
        frame.bottom.spell = _power
        # Label decades only.
        frame.bottom.between, frame.left.between = 4.5, 5.0
        frame.left.set_title(Dimension("FLOP/s"))
        frame.left.spell = lambda value: rate(value).removesuffix("FLOP/s")
        self._roofs, self._drop = Shapes(frame, 1), Shapes(frame, 2)
        self._roof_words, self._names = Labels(frame, 3), Labels(frame, 6)
        self._drawn, self._ring = Points(frame, 4), Rings(frame, 5)
        self._roof_words.labels, self._roof_words.covers = self._labels_of_roofs, self._touches
        self._names.labels = self._labels
        self._names.covers = lambda spot: any(spot.contains(self._place(one)) for one in self.points)
        self._names.taken = lambda: [*self._flat_roofs(), *(spot for _, spot in self._roof_words.placed)]
        frame.changed.connect(self._place_points)

    def show_reports(self, reports: dict[str, RooflineReport | None]) -> None:
        self._reports = dict(reports)
        # Components with operations, traffic and time, which on paper is the floor.
        self.points = tuple(
            RooflinePoint(side, phase, one, row, report)
            for side, report in reports.items()
            if report is not None
            for row, (phase, one) in enumerate(report.components())
            if one.work.operations and one.work.bytes and one.seconds != 0
        )
        self._at = -1
        self.show_again()

    def choose(self, side: str, row: int) -> None:
        """Choose a component by its row; none if it is not plotted."""
        found = (index for index, one in enumerate(self.points) if (one.side, one.row) == (side, row))
        self._at = next(found, -1)
        self.refresh()

    @property
    def at(self) -> RooflinePoint | None:
        return self.points[self._at] if 0 <= self._at < len(self.points) else None

    def as_text(self) -> str:
        lines = ["side\tcomponent\tFLOP/B\tFLOP/s\tseconds"]
        for one in self.points:
            name = label(one.report, one.phase, one.component)
            seconds = one.component.calls * one.seconds
            lines.append(f"{one.side}\t{name}\t{one.intensity:.6g}\t{one.reached:.6g}\t{seconds:.6g}")
        return "\n".join(lines)

    def show_again(self) -> None:
        self._drawn.across = np.array([one.intensity for one in self.points])
        self._drawn.up = np.array([one.reached for one in self.points])
        self._drawn.glyphs = [Glyph((self._colour(one.side),), _SHAPES[one.side]) for one in self.points]
        self._drawn.order = np.arange(len(self.points))
        self.frame.set_scales(*self._scales())
        solid, dashed = Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine
        self._roofs.shapes = [
            Shape.through(corners, pen(self.colours.text, 1.6, dashed if number else solid))
            for number, (_, corners) in enumerate(self._edges())
        ]
        self.refresh()

    def refresh(self) -> None:
        super().refresh()
        self._drop.shapes = []
        if self.at is not None:
            # From the chosen point up to its roof.
            known, one = self.at.report.ceilings, self.at.component
            allowed = one.work.operations / known.floor(one.work, one.precision)
            dots = pen(self.colours.muted, 1.2, Qt.PenStyle.DotLine)
            self._drop.shapes = [Shape((self.at.intensity,) * 2, (self.at.reached, allowed), dots)]
        for layer in (self._roofs, self._roof_words, self._drop, self._drawn, self._names):
            layer.redraw()
        self._place_points()

    def _place_points(self) -> None:
        self._drawn.radius = np.array([self._radius(one) for one in self.points])
        ring = pen(self.colours.text, 2.2 if self.hasFocus() else 1.4)
        rings = [] if self.at is None else [(self._place(self.at), self._radius(self.at) + 3)]
        self._ring.show_rings(rings, ring)

    def _scales(self) -> tuple[Scale, Scale]:
        across = [math.log10(point.intensity) for point in self.points]
        up = [math.log10(point.reached) for point in self.points]
        for report in self._measured():
            for precision in _precisions(report):
                across.append(math.log10(report.ceilings.ridge(precision)))
                up.append(math.log10(report.ceilings.operations_of(precision)))
        if not across:
            return Scale(1.0, 10.0, True), Scale(1e9, 1e10, True)
        return (
            Scale(10.0 ** math.floor(min(across) - 0.2), 10.0 ** math.ceil(max(across) + 0.3), True),
            Scale(10.0 ** math.floor(min(up) - 0.2), 10.0 ** math.ceil(max(up) + 0.1), True),
        )

    def _measured(self) -> list[RooflineReport]:
        return [one for one in self._reports.values() if one is not None]

    def _edges(self) -> Iterator[tuple[str, list[tuple[float, float]]]]:
        """Roof of every precision in use: corners at the start of the memory slope, the ridge and the right end."""
        for precision in dict.fromkeys(one for report in self._measured() for one in _precisions(report)):
            known = self._measured()[0].ceilings
            speed, top = known.bytes_of(precision), known.operations_of(precision)
            start = max(self.frame.across.low, self.frame.up.low / speed)
            yield precision, [(start, start * speed), (known.ridge(precision), top), (self.frame.across.high, top)]

    def _flat_roofs(self) -> list[QRectF]:
        return [QRectF(self.frame.place(*ridge), self.frame.place(*end)) for _, (_, ridge, end) in self._edges()]

    def _colour(self, side: str) -> str:
        return self.colours.baseline if side == "A" else self.colours.accelerated

    def _place(self, point: RooflinePoint) -> QPointF:
        return self.frame.place(point.intensity, point.reached)

    def _share(self, point: RooflinePoint) -> float:
        """Share of the time of its side, 0 to 1."""
        total = point.report.total
        return point.component.calls * point.seconds / total if total else 0.0

    def _radius(self, point: RooflinePoint) -> float:
        return self.em * max(_SMALLEST, _LARGEST * math.sqrt(max(0.0, self._share(point))))

    def point_at(self, place: QPointF) -> int | None:
        """Index of the nearest point at a place in widget coordinates; ``None`` if none is near."""
        far = [QLineF(self._place(one), place).length() - self._radius(one) for one in self.points]
        index = int(np.argmin(far)) if far else -1
        return index if far and far[index] <= 0.4 * self.em else None

    def _labels_of_roofs(self) -> Iterator[Label]:
        for number, (precision, corners) in enumerate(self._edges()):
            low, ridge, end = (self.frame.place(*corner) for corner in corners)
            muted, known = self.colours.muted, self._measured()[0].ceilings

            def above(size: QSizeF, end: QPointF = end, ridge: QPointF = ridge) -> Iterable[QRectF]:
                lefts = np.arange(end.x() - size.width(), min(ridge.x(), end.x() - size.width()) - 1, -size.width() / 4)
                for left in lefts.tolist():
                    yield QRectF(left, end.y() - 1.15 * size.height(), size.width(), size.height())

            yield Label(f"{precision}: {rate(corners[1][1])}", muted, above, always=True, ground=True)
            if number == 0:
                angle = math.degrees(math.atan2(ridge.y() - low.y(), ridge.x() - low.x()))
                # Along the slope, 0.75 font heights above it.
                turn, away = math.radians(angle), 0.75 * self.em
                middle = QPointF(
                    (2 * low.x() + ridge.x()) / 3 + away * math.sin(turn),
                    (2 * low.y() + ridge.y()) / 3 - away * math.cos(turn),
                )

                def along(size: QSizeF, middle: QPointF = middle) -> Iterable[QRectF]:
                    left, top = middle.x() - size.width() / 2, middle.y() - size.height() / 2
                    yield QRectF(left, top, size.width(), size.height())

                words = f"memory: {significant(known.bytes_of(precision) / 1e9)} GB/s"
                yield Label(words, muted, along, always=True, angle=angle)

    def _labels(self) -> Iterator[Label]:
        named = [one for one in self.points if one is self.at or self._share(one) >= 0.02]  # Others by tooltips.
        for point in sorted(named, key=self._share, reverse=True):
            place, away = self._place(point), self._radius(point) + 0.3 * self.em
            name, where = label(point.report, point.phase, point.component), partial(next_to, place, away, far=True)
            yield Label(name, self._colour(point.side), where, ground=True, leader=place)

    def _touches(self, spot: QRectF) -> bool:
        rooms = ((self._place(one), self._radius(one)) for one in self.points)
        return any(spot.adjusted(-room, -room, room, room).contains(place) for place, room in rooms)

    def describe(self, index: int) -> str:
        point = self.points[index]
        report, one, known = point.report, point.component, point.report.ceilings
        below, ratio = one.why_below_floor(known), one.ratio(known)
        floor = "on paper" if ratio is None else f"{times(ratio)} the floor"
        return (
            f"{point.side}: {label(report, point.phase, one)}: {rate(point.reached)} at "
            f"{significant(point.intensity)} FLOP/B, {floor}, bound by "
            f"{one.bound(known, point.phase.graphed)}." + (f" Below its floor: {below}." if below else "")
        )

    def cursor_text(self) -> str:
        return self.describe(self._at) if self.at is not None else f"{len(self.points)} components"

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        if (index := self.point_at(place)) is None:
            return None
        middle, radius = self._place(self.points[index]), self._radius(self.points[index])
        return self.describe(index), QRectF(middle.x() - radius, middle.y() - radius, 2 * radius, 2 * radius)

    def _go_to(self, index: int) -> None:
        self._at = max(0, min(index, len(self.points) - 1))
        self.refresh()
        self.chosen.emit(self.points[self._at].side, self.points[self._at].row)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if (index := self.point_at(event.position())) is None:
            super().mousePressEvent(event)
        else:
            self._go_to(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key not in _MOVES or event.modifiers() & ~self.own_modifiers or not self.points:
            super().keyPressEvent(event)
            return
        last = len(self.points) - 1
        moved = {Qt.Key.Key_Left: self._at - 1, Qt.Key.Key_Right: self._at + 1, Qt.Key.Key_Home: 0}
        self._go_to(moved.get(key, last))


def _precisions(report: RooflineReport) -> tuple[str, ...]:
    """Precisions of the components, float32 first."""
    used = {one.precision for _, one in report.components() if one.precision and one.work.operations}
    return tuple(sorted(used, key=lambda one: (one != "float32", one)))


def _power(value: float) -> str:
    power = round(math.log10(value))
    if -3 <= power <= 4:
        return general(value)
    digits = "" if math.isclose(value, 10.0**power) else f"{general(value / 10.0 ** math.floor(math.log10(value)))}·"
    return f"{digits}10{str(power if not digits else math.floor(math.log10(value))).translate(_SUPERSCRIPTS)}"
