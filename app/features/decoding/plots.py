"""The two plots of the Decoding panel: acceptance by position of the draft, and running tokens per pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QWidget

from app.plotting.palette import series_colour
from app.shell.theme import Colours, style_plot
from engine.measure.decoding import PositionAcceptance

_AXIS = 2.1
"""Height of the numbers and the label below a plot, in heights of the font."""


class _Plot(pg.PlotWidget):
    """A plot without the mouse, whose data can be copied with Ctrl+C."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        # A menu that is made and given up is left to the collector: see app.plotting.menus.
        super().__init__(parent, enableMenu=False)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        for side in ("bottom", "left"):
            self.getAxis(side).enableAutoSIPrefix(False)
        # These plots are low: what the axis would leave around its label is taken from the data.
        self.getAxis("bottom").setHeight(round(_AXIS * self.fontMetrics().height()))

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(14 * em, 8 * em)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(10 * em, round(5.5 * em))

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self.setBackground(QColor(colours.base))
        style_plot(self.getPlotItem(), colours)

    def as_text(self) -> str:
        """The data as tab-separated text."""
        raise NotImplementedError

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.as_text())
        else:
            event.ignore()


_AS_A_WHOLE = (
    "A draft verified as a whole (Verification in Setup, at β = 0) is not judged token by token: a token "
    "may be accepted because of those after it. Then bars show how often one more "
    "token was accepted, which only approximates acceptance at that position."
)


class AcceptancePlot(_Plot):
    """Bars: of the drafts at a position that the target looked at, how many it accepted. Points: of all proposed."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__("Acceptance by position of the draft", parent)
        self._positions: tuple[PositionAcceptance, ...] = ()
        self.setLabel("bottom", "position of the draft")
        self._bars = pg.BarGraphItem(x=[], height=[], width=0.66)
        self._whiskers = pg.ErrorBarItem(x=np.zeros(0), y=np.zeros(0), beam=0.16)
        self._reached = pg.ScatterPlotItem(size=9, symbol="d")
        for one in (self._bars, self._whiskers, self._reached):
            self.addItem(one)
        self._none = pg.TextItem("No drafts: engage SSD", anchor=(0.5, 0.5))
        self._none.setPos(0.5, 50)
        self.addItem(self._none)
        self.setYRange(0, 110, padding=0)
        self.getAxis("left").setTicks([[(share, str(share)) for share in (0, 50, 100)]])
        self.set_colours(colours)

    def show_positions(self, positions: Sequence[PositionAcceptance]) -> None:
        """Show how drafts fared at each position."""
        self._positions = tuple(positions)
        some = [one for one in positions if math.isfinite(one.share)]
        places = np.array([one.position + 1 for one in some], float)
        shares = np.array([100 * one.share for one in some], float)
        ends = np.array([one.interval for one in some], float).reshape(-1, 2) * 100
        self._bars.setOpts(x=places, height=shares, width=0.66)
        self._whiskers.setData(x=places, y=shares, top=ends[:, 1] - shares, bottom=shares - ends[:, 0], beam=0.16)
        self._reached.setData([one.position + 1 for one in positions], [100 * one.reached for one in positions])
        self._none.setVisible(not positions)
        count = max(1, len(positions))
        self.getAxis("bottom").setTicks([[(place, str(place)) for place in range(1, count + 1)]])
        self.setXRange(0.4, count + 0.6, padding=0)
        self._none.setPos((count + 1) / 2, 50)
        said = "; ".join(
            f"position {one.position + 1}: {one.share:.0%} of {one.judged} judged, {one.reached:.0%} of "
            f"{one.proposed} proposed"
            for one in positions
            if one.judged
        )
        self.setAccessibleDescription(said or "No drafts")
        self.setToolTip(
            "Bars: share of the judged tokens (all before them were accepted), with 95 % intervals.<br>"
            f"Diamonds: share of all proposed tokens.<br>{_AS_A_WHOLE}<br>{said}"
        )

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        super().set_colours(colours)
        self._bars.setOpts(brush=QColor(series_colour(colours, 2)), pen=pg.mkPen(colours.base))
        self._whiskers.setData(pen=pg.mkPen(colours.text, width=1.6))
        self._reached.setBrush(QColor(colours.accelerated))
        self._reached.setPen(pg.mkPen(colours.base))
        self._none.setColor(QColor(colours.muted))

    def as_text(self) -> str:
        lines = ["position\tproposed\tjudged\taccepted"]
        lines += [f"{one.position + 1}\t{one.proposed}\t{one.judged}\t{one.accepted}" for one in self._positions]
        return "\n".join(lines)


class RunningPlot(_Plot):
    """Committed tokens for each pass of the target, as a running mean along the audio, with the mean of all."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__("Tokens per target pass", parent)
        self._points: tuple[tuple[float, ...], tuple[float, ...]] = (), ()
        self.setLabel("bottom", "seconds of audio")
        self._curve = self.plot([], [])
        self._mean = pg.InfiniteLine(angle=0)
        self.addItem(self._mean, ignoreBounds=True)
        self.set_colours(colours)

    def show_points(self, seconds: Sequence[float], means: Sequence[float], mean: float) -> None:
        """Show the running ``means`` along ``seconds``, and the ``mean`` of all."""
        self._points = tuple(seconds), tuple(means)
        self._curve.setData(list(seconds), list(means))
        self._mean.setValue(mean)
        highest = max([1.0, *means])
        self.setYRange(0, highest * 1.12, padding=0)
        apart = max(1, math.ceil(highest / 4))
        self.getAxis("left").setTicks([[(value, str(value)) for value in range(0, math.ceil(highest) + 1, apart)]])
        self.setXRange(0, max([0.1, *seconds]), padding=0)
        self.setAccessibleDescription(f"{mean:.2f} tokens per pass on average, at most {highest:.2f}")

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        super().set_colours(colours)
        self._curve.setPen(pg.mkPen(colours.accent, width=2))
        self._mean.setPen(pg.mkPen(colours.muted, width=1.4, style=Qt.PenStyle.DashLine))

    def as_text(self) -> str:
        lines = ["seconds\ttokens per pass"]
        lines += [f"{one:.3f}\t{value:.4f}" for one, value in zip(*self._points, strict=True)]
        return "\n".join(lines)
