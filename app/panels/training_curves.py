"""The two curves of a training: the loss of every step, and what validation finds now and then, over log steps."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.theme import Colours, style_plot
from engine.messages import TrainingProgress

DRAW_MILLISECONDS = 100
_SMOOTHING = 25
"""Steps over which the thick loss curve is a mean: single batches differ more than training changes."""


class TrainingCurves(QWidget):
    """Loss above, validation below; both over the number of steps, logarithmically."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.steps: list[int] = []
        self.losses: list[float] = []
        self.validated: list[int] = []
        self.learnt: list[float] = []
        self.gaps: list[float] = []
        self._redraw = QTimer(self, singleShot=True, interval=DRAW_MILLISECONDS)
        self._redraw.timeout.connect(self._draw)
        self._loss_plot = self._plot("Loss of every step")
        self._loss_plot.setLabel("left", "loss")
        self._each = self._loss_plot.plot()
        self._mean = self._loss_plot.plot()
        self._validation_plot = self._plot("Validation: share of the guidance that one branch has taken on, and gap")
        self._validation_plot.setLabel("left", "share")
        self._validation_plot.setYRange(0, 1.05)
        self._learnt = self._validation_plot.plot(symbol="o", symbolSize=6)
        self._gap = self._validation_plot.plot(symbol="s", symbolSize=6)
        self._last_loss, self._legend = QLabel(), QLabel(wordWrap=True)
        self._legend.setTextFormat(Qt.TextFormat.RichText)
        self._last_loss.setProperty("look", "muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for one, stretch in (
            (self._last_loss, 0),
            (self._loss_plot, 1),
            (self._legend, 0),
            (self._validation_plot, 1),
        ):
            column.addWidget(one, stretch)
        self.set_colours(colours)

    @staticmethod
    def _plot(name: str) -> pg.PlotWidget:
        plot = pg.PlotWidget()
        plot.setAccessibleName(name)
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        plot.setLogMode(x=True, y=False)
        plot.setLabel("bottom", "step")
        plot.setMouseEnabled(x=False, y=False)
        plot.hideButtons()
        plot.setMenuEnabled(False)
        for side in ("bottom", "left"):
            plot.getAxis(side).enableAutoSIPrefix(False)
        return plot

    def clear(self) -> None:
        """Forget an earlier run."""
        for one in (self.steps, self.losses, self.validated, self.learnt, self.gaps):
            one.clear()
        self._draw()

    def add(self, event: TrainingProgress) -> None:
        """Add what an event brings; steps that a resumed run takes again replace what they were."""
        if event.losses:
            while self.steps and self.steps[-1] >= event.step:
                self.steps.pop()
                self.losses.pop()
            self.steps.append(event.step)
            self.losses.append(sum(event.losses.values()))
        if event.validation:
            # A logarithmic axis has no 0: what is found before the first step stands there.
            step = max(event.step, 1)
            while self.validated and self.validated[-1] >= step:
                for one in (self.validated, self.learnt, self.gaps):
                    one.pop()
            self.validated.append(step)
            self.learnt.append(event.validation["learnt"])
            self.gaps.append(event.validation["gap"])
        if not self._redraw.isActive():
            self._redraw.start()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        for plot in (self._loss_plot, self._validation_plot):
            plot.setBackground(QColor(colours.base))
            style_plot(plot.getPlotItem(), colours)
        self._each.setPen(pg.mkPen(colours.disabled, width=1))
        self._mean.setPen(pg.mkPen(colours.accent, width=2))
        for curve, colour in ((self._learnt, colours.good), (self._gap, colours.accelerated)):
            curve.setPen(pg.mkPen(colour, width=2))
            curve.setSymbolPen(None)
            curve.setSymbolBrush(colour)
        self._colours = colours
        self._say()

    def _draw(self) -> None:
        self._each.setData(self.steps, self.losses)
        self._mean.setData(self.steps, _running_mean(self.losses))
        self._learnt.setData(self.validated, self.learnt)
        self._gap.setData(self.validated, self.gaps)
        highest = max([1.0, *self.gaps, *self.learnt])
        self._validation_plot.setYRange(min(0.0, *self.learnt, 0.0), 1.05 * highest, padding=0)
        self._say()

    def _say(self) -> None:
        colours = self._colours
        loss = (
            f"{_running_mean(self.losses)[-1]:.3f} (mean of {min(len(self.losses), _SMOOTHING)})"
            if self.losses
            else "–"
        )
        self._last_loss.setText(f"Loss: {loss}")
        found = (f"{self.learnt[-1]:.0%}", f"{self.gaps[-1]:.2f}") if self.learnt else ("–", "–")
        self._legend.setText(
            f'<span style="color:{colours.good}">●</span> guidance taken on: {found[0]} &nbsp; '
            f'<span style="color:{colours.accelerated}">■</span> gap to the guided velocity: {found[1]}'
        )
        self._validation_plot.setAccessibleDescription(self._legend.text())


def _running_mean(values: list[float]) -> list[float]:
    means, total = [], 0.0
    for index, value in enumerate(values):
        total += value - (values[index - _SMOOTHING] if index >= _SMOOTHING else 0.0)
        means.append(total / min(index + 1, _SMOOTHING))
    return means
