"""An axis without pyqtgraph's title."""

from __future__ import annotations

import pyqtgraph as pg

from paretone_app.numbers import localised


class BareAxis(pg.AxisItem):
    """Draws a line and numbers. pyqtgraph would lay its title out a dozen times for each axis that it makes, and again
    whenever the range changes, even where none is shown."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        return [localised(text) for text in super().tickStrings(values, scale, spacing)]

    def _updateLabel(self) -> None:
        self._adjustSize()
        self.picture = None
        self.update()
