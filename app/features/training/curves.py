"""How a training goes: the terms of every step's loss, and what validation finds now and then, over log steps."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.features.training.model import Found
from app.plotting.palette import DASHES, MARKS, series_colour
from app.shell.theme import Colours, style_plot
from engine.session.messages import TrainingProgress

DRAW_MILLISECONDS = 100
_SMOOTHING = 25
"""Steps over which thick loss curves are means: single batches differ more than training changes."""
_MOST_TERMS, _MOST_FOUND = 6, 3


class TrainingCurves(QWidget):
    """Loss above, validation below; both over the number of steps, logarithmically."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.steps: list[int] = []
        self.terms: dict[str, list[float]] = {}
        """Values of each term of the loss, one for every step."""
        self.validated: list[int] = []
        self.found: dict[str, list[float]] = {}
        """Values of each figure of the validations."""
        self._figures: tuple[Found, ...] = ()
        self._several = False
        self._redraw = QTimer(self, singleShot=True, interval=DRAW_MILLISECONDS)
        self._redraw.timeout.connect(self._draw)
        self._loss_plot = self._plot("Loss of every step")
        self._loss_plot.setLabel("left", "loss")
        self._each = self._loss_plot.plot()
        self._means = [self._loss_plot.plot(connect="finite") for _ in range(_MOST_TERMS)]
        self._validation_plot = self._plot("Validation")
        self._validation_plot.setLabel("left", "share")
        self._validation_plot.setYRange(0, 1.05)
        self._curves = [self._validation_plot.plot(symbol=mark, symbolSize=7) for mark in MARKS[:_MOST_FOUND]]
        self._losses, self._legend = QLabel(wordWrap=True), QLabel(wordWrap=True)
        for label in (self._losses, self._legend):
            label.setTextFormat(Qt.TextFormat.RichText)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for one, stretch in (
            (self._losses, 0),
            (self._loss_plot, 1),
            (self._legend, 0),
            (self._validation_plot, 1),
        ):
            column.addWidget(one, stretch)
        self.set_colours(colours)

    @staticmethod
    def _plot(name: str) -> pg.PlotWidget:
        plot = pg.PlotWidget(enableMenu=False)
        plot.setAccessibleName(name)
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        plot.setLogMode(x=True, y=False)
        plot.setLabel("bottom", "step")
        plot.setMouseEnabled(x=False, y=False)
        plot.hideButtons()
        # So that the topmost number is not cut off.
        plot.getPlotItem().setContentsMargins(0, plot.fontMetrics().height() / 2, 0, 0)
        for side in ("bottom", "left"):
            plot.getAxis(side).enableAutoSIPrefix(False)
        # The axis holds logarithms; the second level is labelled where there is room.
        levels = ((1,), (2, 5))
        plot.getAxis("bottom").setTicks(
            [
                [(math.log10(one) + decade, f"{one * 10**decade}") for decade in range(7) for one in ones]
                for ones in levels
            ]
        )
        return plot

    def show_figures(self, figures: tuple[Found, ...]) -> None:
        """Draw these figures of validations from now on; an earlier training is forgotten where they are others."""
        if figures != self._figures:
            self._figures = figures
            self.clear()

    def clear(self) -> None:
        """Forget an earlier run."""
        for one in (self.steps, self.terms, self.validated, self.found):
            one.clear()
        self._draw()

    def add(self, event: TrainingProgress) -> None:
        """Add what an event brings; steps that a resumed run takes again replace what they were."""
        if event.losses:
            _append(self.steps, self.terms, event.step, event.losses)
        if event.validation:
            # A logarithmic axis has no 0: what is found before the first step stands there.
            _append(self.validated, self.found, max(event.step, 1), event.validation)
        if not self._redraw.isActive():
            self._redraw.start()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        for plot in (self._loss_plot, self._validation_plot):
            plot.setBackground(QColor(colours.base))
            style_plot(plot.getPlotItem(), colours)
        self._each.setPen(pg.mkPen(colours.disabled, width=1))
        for index, curve in enumerate(self._means):
            curve.setPen(pg.mkPen(series_colour(colours, index), width=2, style=DASHES[index // 5]))
        for index, curve in enumerate(self._curves):
            colour = series_colour(colours, index)
            curve.setPen(pg.mkPen(colour, width=2))
            curve.setSymbolPen(None)
            curve.setSymbolBrush(colour)
        self._colours = colours
        self._say()

    def _draw(self) -> None:
        if self._several != (len(self.terms) > 1):
            # Terms of a loss differ by orders of magnitude.
            self._several = len(self.terms) > 1
            self._loss_plot.setLogMode(x=True, y=self._several)
        terms = list(self.terms.values())
        self._each.setData(*((self.steps, terms[0]) if len(terms) == 1 else ([], [])))
        for index, curve in enumerate(self._means):
            some = index < len(terms)
            curve.setData(*((self.steps, _running_mean(terms[index])) if some else ([], [])))
        drawn = [self._drawn(one) for one in self._figures]
        for curve, values in zip(self._curves, [*drawn, *[[]] * _MOST_FOUND], strict=False):
            curve.setData(self.validated if values else [], values)
        every = [value for values in drawn for value in values]
        self._validation_plot.setYRange(min([0.0, *every]), 1.05 * max([1.0, *every]), padding=0)
        self._say()

    def _drawn(self, one: Found) -> list[float]:
        """The values of a figure; those that are no shares as shares of the first one."""
        values = self.found.get(one.name, [])
        return list(values) if one.share else [value / (values[0] or 1.0) for value in values]

    def _say(self) -> None:
        colours = self._colours
        said = [
            f"{_mark('━', series_colour(colours, index))}&nbsp;{name.replace('_', '&nbsp;')}&nbsp;"
            f"{_running_mean(values)[-1]:.3g}"
            for index, (name, values) in enumerate(self.terms.items())
        ]
        mean = f" (mean of {min(len(self.steps), _SMOOTHING)} steps)" if said else "–"
        self._losses.setText(f"Loss: {' &nbsp; '.join(said)}{mean}")
        legend = []
        for index, one in enumerate(self._figures):
            values = self.found.get(one.name)
            value = one.wording(values[-1]) if values else "–"
            title = one.title if one.share else f"{one.title} (drawn as a share of the first)"
            legend.append(f"{_mark('●', series_colour(colours, index))}&nbsp;{title}: {value}")
        self._legend.setText(" &nbsp; ".join(legend))
        self._validation_plot.setAccessibleDescription(self._legend.text())
        self._loss_plot.setAccessibleDescription(self._losses.text())


def _append(steps: list[int], series: dict[str, list[float]], step: int, values: Mapping[str, float]) -> None:
    """Add ``values`` by name at ``step``, in place of what came there or later."""
    while steps and steps[-1] >= step:
        steps.pop()
        for one in series.values():
            one.pop()
    for name, value in values.items():
        series.setdefault(name, [float("nan")] * len(steps)).append(float(value))
    steps.append(step)
    for one in series.values():
        if len(one) < len(steps):
            one.append(float("nan"))


def _mark(sign: str, colour: str) -> str:
    return f'<span style="color:{colour}">{sign}</span>'


def _running_mean(values: list[float]) -> list[float]:
    """Over the last steps; those at which a term was not taken are passed over."""
    taken = np.isfinite(values)
    sums, counts = np.cumsum(np.where(taken, values, 0.0)), np.cumsum(taken)
    sums[_SMOOTHING:] -= sums[:-_SMOOTHING].copy()
    counts[_SMOOTHING:] -= counts[:-_SMOOTHING].copy()
    return list(np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0))
