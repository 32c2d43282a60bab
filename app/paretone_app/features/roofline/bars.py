"""Waterfall of the time per component, A's above B's, each beginning where the one before it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from PySide6.QtCore import QMarginsF, QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QBrush, QColor, QPen
from PySide6.QtWidgets import QWidget

from paretone.figures.scales import Scale, tick_text
from paretone.figures.scatter import Dimension
from paretone.measure.roofline.ceilings import Ceilings
from paretone.measure.roofline.report import REST, TITLES, WITHIN_NOISE, Component, RooflineReport
from paretone_app.numbers import fixed, general, percent
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.layers import Block, Blocks
from paretone_app.plotting.words import Entry, Label, Labels, Legend
from paretone_app.shell.colours import Colours
from paretone_app.state.differences import speed_of_b
from paretone_app.widgets.side_panel import SIDES

_ROWS_AT_LEAST, _ROW, _ABOVE_AND_BELOW = 6, 1.9, 5.6
"""Heights of a component and of title, legend and axis, in heights of the font."""
_THICKEST = 1.1
_SAVED = Qt.BrushStyle.Dense6Pattern
"""Of a bar that goes back: all components together take less than each alone."""
_NUMBERS = 6.8
"""Room for the label after the longest bar."""


class Waterfall(Chart):
    """Measured seconds of every component, all phases together, with the least that each could take."""

    least = (20.0, 12.0)
    saved_alone = False

    def __init__(self, colours: Colours, parent: QWidget | None = None, on_paper: bool = False) -> None:
        super().__init__("Where the time goes", colours, parent, on_paper)
        self._reports: dict[str, RooflineReport | None] = dict.fromkeys(SIDES)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        frame = self.frame
        frame.margins = QMarginsF(0.5, 3.2, _NUMBERS, 2.6)
        frame.set_bordered(False)
        frame.bottom.spell = lambda seconds: tick_text(1e3 * seconds)
        self._bars, self._floors = Blocks(frame, 1), Blocks(frame, 2)
        self._legend, self._numbers = Legend(frame, 3), Labels(frame, 4, share=0.85)
        self._numbers.labels = self._labels
        frame.changed.connect(self._place_bars)

    def show_reports(self, reports: dict[str, RooflineReport | None]) -> None:
        """Show what was measured of A and B."""
        self._reports = dict(reports)
        self.updateGeometry()
        self.show_again()

    @property
    def names(self) -> tuple[str, ...]:
        """The components that are shown, from above."""
        there = {name for _, one in self._measured() for name in one.by_component()}
        return tuple(name for name in TITLES if name in there)

    def _measured(self) -> list[tuple[str, RooflineReport]]:
        return [(side, one) for side, one in self._reports.items() if one is not None]

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(30 * em, round((_ABOVE_AND_BELOW + _ROW * max(_ROWS_AT_LEAST, len(self.names))) * em))

    # --- In words ----------------------------------------------------------------------------------------------------
    def describe(self) -> str:
        """The bars in words."""
        lines = []
        for side, report in self._measured():
            parts = (f"{TITLES[name]} {milliseconds(one)}" for name, one in report.by_component().items())
            noise = f" ({WITHIN_NOISE})" if report.rest_is_noise else ""
            lines.append(f"{side}: {milliseconds(report.measured)}; {', '.join(parts)}{noise}.")
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

    # --- Drawing -----------------------------------------------------------------------------------------------------
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
            legend.append(Entry(f"{side} {milliseconds(report.measured)}", QColor(self._fill(side))))
        if measured:
            legend.append(Entry("the floor", QBrush(QColor(colours.text), Qt.BrushStyle.BDiagPattern)))
            if any(seconds < 0 for _, report in measured for seconds in report.by_component().values()):
                legend.append(Entry("saved, less than 0", QBrush(QColor(colours.text), _SAVED)))
            # A clock's name says seconds; along the axis there are thousandths of them.
            clock = measured[0][1].ceilings.clock.replace("seconds", "time", 1)
            self.frame.bottom.set_title(Dimension(f"ms ({clock})", "ms"))
        self._legend.entries = legend
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
        thick = min(0.8 / max(1, len(measured)), _THICKEST * self.em / max(step, 1.0))
        gap = 1.5 / max(step, 1.0)
        for number, (side, report) in enumerate(measured):
            for name, span in _spans(report).items():
                top = len(names) - 1 - names.index(name) + thick * (len(measured) / 2 - number)
                colour = QColor(self._fill(side))
                saved = span[1] < span[0]
                fill, outline = (QBrush(colour, _SAVED), QPen(colour)) if saved else (colour, None)
                yield side, report, name, Block(span, (top - thick + gap, top), fill, outline)

    def _place_bars(self) -> None:
        hatch = QBrush(QColor(self.colours.base), Qt.BrushStyle.BDiagPattern)
        bars, floors = [], []
        for _, report, name, bar in self._bars_of():
            left, right = sorted(bar.x)
            bars.append(bar)
            if bar.outline is not None:
                continue
            floors.append(Block((left, min(left + _floors(report).get(name, 0.0), right)), bar.y, hatch))
        self._bars.blocks, self._floors.blocks = bars, floors
        for layer in (self._bars, self._floors, self._legend):
            layer.redraw()

    def _labels(self) -> Iterator[Label]:
        """Time of each component, after its bar, or before it if there is no room after it."""
        for _, report, name, bar in self._bars_of():
            seconds = report.by_component()[name]
            share = seconds / report.measured if report.measured else 0.0
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
    """A time of some thousandths of a second in words."""
    size = abs(seconds)
    return ("−" if seconds < 0 else "") + (f"{fixed(size, 2)} s" if size >= 1 else f"{general(size * 1e3, 3)} ms")


def floor_words(one: Component, ceilings: Ceilings) -> str:
    """A component's time over its floor, and whether it is at its floor or below it; ``–`` if one of them is
    missing."""
    ratio = one.ratio(ceilings)
    if ratio is None:
        return "–"
    where = "at the floor" if one.at_floor(ceilings) else "below the floor" if ratio < 1 else ""
    return f"{fixed(ratio, 2)}, {where}" if where else fixed(ratio, 2)


def _spans(report: RooflineReport) -> dict[str, tuple[float, float]]:
    """When each component begins and ends, in seconds, one after the other in the order of the titles."""
    found, begin, seconds = {}, 0.0, report.by_component()
    for name in TITLES:
        if name in seconds:
            found[name] = begin, begin + seconds[name]
            begin += seconds[name]
    return found


def _floors(report: RooflineReport) -> dict[str, float]:
    """The least seconds that each component could take."""
    found: dict[str, float] = {}
    for _, one in report.components():
        found[one.name] = found.get(one.name, 0.0) + one.floor(report.ceilings)
    return found
