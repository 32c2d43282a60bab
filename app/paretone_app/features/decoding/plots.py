"""The two plots of the Decoding panel: acceptance by position of the draft, and running tokens per pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QMarginsF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from paretone.figures.glyphs import Glyph
from paretone.figures.scales import Scale
from paretone.figures.scatter import Dimension
from paretone.measure.decoding import PositionAcceptance
from paretone_app.numbers import fixed, percent
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.curves import CurveChart, Series, series_colour
from paretone_app.plotting.frame import pen
from paretone_app.plotting.layers import Block, Blocks, Shape
from paretone_app.plotting.points import Beams, IntervalMark, Points
from paretone_app.shell.colours import Colours

_IDEAL, _LEAST = (14.0, 8.0), (10.0, 5.5)
"""In heights of the font: these plots are low."""
_BAR, _MARK = 0.66, 0.3
"""Width of a bar, as a share of its room; radius of a mark, in heights of the font."""

_AS_A_WHOLE = (
    "A draft verified as a whole (Verification in Setup, at β = 0) is not judged token by token: a token "
    "may be accepted because of those after it. Then bars show how often one more "
    "token was accepted, which only approximates acceptance at that position."
)


class AcceptancePlot(Chart):
    """Bars: of the drafts at a position that the target looked at, how many it accepted. Points: of all proposed."""

    ideal, least = _IDEAL, _LEAST

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__("Acceptance by position of the draft", colours, parent)
        self._positions: tuple[PositionAcceptance, ...] = ()
        frame = self.frame
        frame.margins = QMarginsF(0.0, 0.5, 0.5, 2.5)
        frame.set_bordered(False)
        frame.bottom.set_title(Dimension("position of the draft"))
        frame.left.between = 1.3
        self._bars, self._whiskers, self._reached = Blocks(frame, 1), Beams(frame, 2), Points(frame, 3)
        self.set_colours(colours)

    def show_positions(self, positions: Sequence[PositionAcceptance]) -> None:
        """Show how drafts fared at each position."""
        self._positions = tuple(positions)
        self.show_again()

    def show_again(self) -> None:
        positions, colours = self._positions, self.colours
        judged = [one for one in positions if math.isfinite(one.share)]
        fill = QColor(series_colour(colours, 2))
        self._bars.blocks = [
            Block((one.position + 1 - _BAR / 2, one.position + 1 + _BAR / 2), (0.0, 100 * one.share), fill)
            for one in judged
        ]
        self._whiskers.intervals = [
            IntervalMark(one.position + 1, 100 * one.interval[0], 100 * one.interval[1]) for one in judged
        ]
        self._reached.across = np.array([one.position + 1 for one in positions], float)
        self._reached.up = np.array([100 * one.reached for one in positions], float)
        self._reached.glyphs = [Glyph((colours.accelerated,), "diamond")] * len(positions)
        self._reached.order, self._reached.radius = np.arange(len(positions)), _MARK * self.em
        count = max(1, len(positions))
        self.frame.bottom.set_names([(place, str(place)) for place in range(1, count + 1)])
        self.set_note("" if positions else "No drafts: switch SSD on")
        self.frame.set_scales(Scale(0.4, count + 0.6), Scale(0.0, 105.0))
        self.refresh()

    def cursor_text(self) -> str:
        said = "; ".join(
            f"position {one.position + 1}: {percent(one.share)} of {one.judged} judged, {percent(one.reached)} "
            f"of {one.proposed} proposed"
            for one in self._positions
            if one.judged
        )
        return said or "No drafts"

    def refresh(self) -> None:
        super().refresh()
        self.setToolTip(self.tip_at(QPointF())[0])

    def tip_at(self, _place: QPointF) -> tuple[str, QRectF]:
        words = (
            "Bars: share of the judged tokens (all before them were accepted), with 95 % intervals.<br>"
            f"Diamonds: share of all proposed tokens.<br>{_AS_A_WHOLE}<br>{self.cursor_text()}"
        )
        return words, QRectF(self.rect())

    def as_text(self) -> str:
        lines = ["position\tproposed\tjudged\taccepted"]
        lines += [f"{one.position + 1}\t{one.proposed}\t{one.judged}\t{one.accepted}" for one in self._positions]
        return "\n".join(lines)


class RunningPlot(CurveChart):
    """Committed tokens for each pass of the target, as a running mean along the audio, with the mean of all."""

    ideal, least = _IDEAL, _LEAST

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        x, y = Dimension("seconds of audio", "Second"), Dimension("")
        super().__init__("Tokens per target pass", x, y, colours, parent)
        self.frame.margins = QMarginsF(0.0, 0.5, 1.2, 2.5)
        self.frame.set_bordered(False)
        self.frame.left.between = 1.3
        self._points: tuple[tuple[float, ...], tuple[float, ...], float] = (), (), 0.0

    def show_points(self, seconds: Sequence[float], means: Sequence[float], mean: float) -> None:
        """Show the running ``means`` along ``seconds``, and the ``mean`` of all."""
        self._points = tuple(seconds), tuple(means), mean
        self.show_again()

    def show_again(self) -> None:
        seconds, means, mean = self._points
        across = Scale(0.0, max([0.1, *seconds]))
        highest = max([1.0, *means])
        line = pen(self.colours.muted, 1.4, Qt.PenStyle.DashLine)
        self.show_series(
            [Series("tokens per pass", np.array(seconds), np.array(means), self.colours.accent)],
            across,
            Scale(0.0, highest * 1.12),
            Shape((across.low, across.high), (mean, mean), line),
            f"{fixed(mean, 2)} tokens per pass on average, at most {fixed(highest, 2)}",
        )
