"""Curves of a training: the loss terms of every step and the validation figures, over the logarithm of steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QWidget

from paretone.figures.scales import Scale
from paretone.figures.scatter import Dimension
from paretone.training.forms import Figure
from paretone.training.requests import TrainingProgress
from paretone_app.features.training.model import figure_wording
from paretone_app.numbers import general
from paretone_app.plotting.curves import DASHES, CurveChart, Series, series_colour, shape_of
from paretone_app.shell.colours import Colours
from paretone_app.widgets import build
from paretone_app.widgets.layouts import VBoxLayout

DRAW_MILLISECONDS = 100
_SMOOTHING = 25
"""Steps over which thick loss curves are means: single batches differ more than training changes."""
_STEPS_AT_LEAST = 10
"""That the axis shows."""


class TrainingCurves(QWidget):
    """Loss above, validation below; both over the number of steps, logarithmically."""

    drawn = Signal()
    """The curves were drawn again, or are empty."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.steps: list[int] = []
        self.terms: dict[str, list[float]] = {}
        """Values of each term of the loss, one for every step."""
        self.validated: list[int] = []
        self.found: dict[str, list[float]] = {}
        """Values of each figure of the validations."""
        self._figures: tuple[Figure, ...] = ()
        self._colours = colours
        self._redraw = QTimer(self, singleShot=True, interval=DRAW_MILLISECONDS)
        self._redraw.timeout.connect(self._draw)
        step = Dimension("step")
        self.loss = CurveChart("Loss of every step", step, Dimension("loss"), colours)
        self.validation = CurveChart("Validation", step, Dimension("share"), colours)
        self._losses, self._legend = build.words(rich=True), build.words(rich=True)
        build.fill(VBoxLayout(self), (self._losses, (self.loss, 1), self._legend, (self.validation, 1)))
        self._draw()

    def show_figures(self, figures: tuple[Figure, ...]) -> None:
        """Draw these figures of validations from now on; an earlier training is forgotten if they are others."""
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
            # A logarithmic axis has no 0: figures from before the first step are drawn at 1.
            _append(self.validated, self.found, max(event.step, 1), event.validation)
        if not self._redraw.isActive():
            self._redraw.start()

    @property
    def has_any(self) -> bool:
        """Whether there is any point to draw."""
        return bool(self.steps or self.validated)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        for chart in (self.loss, self.validation):
            chart.set_colours(colours)
        self._draw()

    def _draw(self) -> None:
        self._say()
        colours, steps, validated = self._colours, np.array(self.steps, float), np.array(self.validated, float)
        inks = [series_colour(colours, index) for index in range(max(len(self.terms), len(self._figures)))]
        across = Scale.of(np.array([1.0, max([_STEPS_AT_LEAST, *self.steps[-1:], *self.validated[-1:]])]), True)
        means = [
            Series(name, steps, np.array(_running_mean(values)), ink, style=DASHES[index // 5])
            for index, (ink, (name, values)) in enumerate(zip(inks, self.terms.items(), strict=False))
        ]
        # Several terms of a loss differ by orders of magnitude, and those of every step would hide each other.
        each = [Series("each step", steps, np.array(values), colours.disabled, 1.0) for values in self.terms.values()]
        each = each if len(each) == 1 else []
        drawn = np.concatenate([np.empty(0), *(one.y for one in (*each, *means))])
        up = Scale.of(drawn, logarithmic=len(self.terms) > 1)
        self.loss.show_series([*each, *means], across, up, summary=self._losses.text())
        found = [
            Series(one.title, validated, values, ink, mark=shape_of(index))
            for index, (ink, one) in enumerate(zip(inks, self._figures, strict=False))
            if len(values := np.array(self._drawn(one)))
        ]
        every = [value for one in found for value in one.y.tolist()]
        up = Scale(min([0.0, *every]), 1.05 * max([1.0, *every]))
        self.validation.show_series(found, across, up, summary=self._legend.text())
        self.drawn.emit()

    def _drawn(self, one: Figure) -> list[float]:
        """The values of a figure; those that are no shares as shares of the first one."""
        values = self.found.get(one.name, [])
        return list(values) if one.share else [value / (values[0] or 1.0) for value in values]

    def _say(self) -> None:
        colours = self._colours
        said = [
            f"{_mark('━', series_colour(colours, index))}&nbsp;{name.replace('_', '&nbsp;')}&nbsp;"
            f"{general(_running_mean(values)[-1], 3)}"
            for index, (name, values) in enumerate(self.terms.items())
        ]
        mean = f" (mean of {min(len(self.steps), _SMOOTHING)} steps)" if said else "–"
        self._losses.setText(f"Loss: {' &nbsp; '.join(said)}{mean}")
        legend = []
        for index, one in enumerate(self._figures):
            values = self.found.get(one.name)
            value = figure_wording(one, values[-1]) if values else "–"
            title = one.title if one.share else f"{one.title} (drawn as a share of the first)"
            legend.append(f"{_mark('●', series_colour(colours, index))}&nbsp;{title}: {value}")
        self._legend.setText(" &nbsp; ".join(legend))


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
