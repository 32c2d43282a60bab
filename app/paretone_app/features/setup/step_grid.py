"""The step grid, drawn small: the times that the solver passes on its way from noise to speech, or how much of a canvas
is filled in after each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from paretone.errors import SettingError
from paretone.sampling.demasking_schedule import demasking_times
from paretone.sampling.schedules import effective_spacing, time_grid
from paretone_app.numbers import general
from paretone_app.shell.colours import Colours
from paretone_app.widgets.screen_readers import CHART

_MARK_WIDTH = 2.0


class StepGrid(QWidget):
    """One mark for each time, noise left, speech right; below them, fainter, those of a grid to compare with."""

    screen_role = CHART

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._times: tuple[float, ...] = ()
        self._others: tuple[float, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(line * 8, int(line * (1.7 if self._others else 1.2)))

    minimumSizeHint = sizeHint

    @property
    def times(self) -> tuple[float, ...]:
        """The times shown."""
        return self._times

    @property
    def others(self) -> tuple[float, ...]:
        """Those of the grid below, if any."""
        return self._others

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.update()

    def show_options(self, options: Mapping[str, Any], other: Mapping[str, Any] | None = None) -> None:
        """Show the grid of sampler ``options``, and that of ``other`` ones below it; nothing if they make none."""
        try:
            self._times, words = _times(options), _words(options)
            self._others = () if other is None else _times(other)
        except KeyError:
            self._times, self._others, words = (), (), ""
        except SettingError as error:
            self._times, self._others, words = (), (), str(error)
        self.setVisible("steps" in options)
        compared = f" Below it the baseline's: {_words(other)}." if self._others and other is not None else ""
        ends = "Left: canvas empty; right: canvas full" if "shift" in options else "Left: noise; right: speech"
        description = f"Effective step grid: {words}. {ends}.{compared}"
        self.setToolTip(description)
        self.setAccessibleName(description)
        self.updateGeometry()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            height, width = self.height(), self.width() - _MARK_WIDTH
            axis = height * (0.52 if self._others else 0.75)
            painter.fillRect(QRectF(0, axis, self.width(), 1), QColor(self._colours.border))
            for time in self._others:
                painter.fillRect(QRectF(time * width, axis + 2, 1, height * 0.3), QColor(self._colours.disabled))
            for time in self._times:
                top = height * 0.1
                painter.fillRect(QRectF(time * width, top, _MARK_WIDTH, axis - top), QColor(self._colours.accent))


def _times(options: Mapping[str, Any]) -> tuple[float, ...]:
    if "shift" in options:
        return tuple(demasking_times(int(options["steps"]), float(options["shift"])).tolist())
    grid = time_grid(int(options["steps"]), str(options.get("spacing", "uniform")), float(options.get("sway", 0.0)))
    return tuple(float(time) for time in grid)


def _words(options: Mapping[str, Any]) -> str:
    steps = int(options["steps"])
    if "shift" in options:
        return f"{steps} steps, schedule {general(float(options['shift']))}"
    name = "EPSS" if effective_spacing(steps, str(options.get("spacing", "uniform"))) == "epss" else "uniform"
    return f"{steps} steps, {name}, sway {general(float(options.get('sway', 0.0)))}"
