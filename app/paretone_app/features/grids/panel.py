"""Grid: the placed times in use next to well-known grids, and the progress of a search."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from paretone.measure.metrics import HIGHER, metric
from paretone.sampling.grid_search import Trial
from paretone.sampling.schedules import effective_spacing, time_grid
from paretone.techniques.searched_grid import DISTANCE, PlacedGrid, Searched, figure_of, figure_text
from paretone_app.numbers import counted, displayed, fixed
from paretone_app.plotting.cursor_canvas import Painted
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.screen_readers import CHART

_LINE, _MARK = 2.4, 3.0
"""Height of a line, in font heights; width of a mark, in pixels."""


@dataclass(frozen=True)
class Row:
    title: str
    times: tuple[float, ...]
    figure: str = ""
    chosen: bool = False


class Ruler(Painted):
    """One line per grid, from noise (left) to speech (right), with a mark at each time."""

    screen_role = CHART

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self.rows: Sequence[Row] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def show_rows(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        said = [
            f"{one.title}: {' '.join(fixed(time, 3) for time in one.times)}"
            + (f" ({one.figure})" if one.figure else "")
            for one in rows
        ]
        self.setAccessibleDescription("; ".join(said))
        self.setToolTip("\n".join(said))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(line * 20, round(line * _LINE * max(1, len(self.rows))))

    minimumSizeHint = sizeHint

    def paintEvent(self, event: QPaintEvent) -> None:
        metrics = self.fontMetrics()
        high = metrics.height() * _LINE
        left = max((metrics.horizontalAdvance(one.title) for one in self.rows), default=0) + metrics.height()
        right = max((metrics.horizontalAdvance(one.figure) for one in self.rows), default=0) + metrics.height()
        room = max(1.0, self.width() - left - right - _MARK)
        with QPainter(self) as painter:
            for index, one in enumerate(self.rows):
                top, middle = index * high, (index + 0.5) * high
                painter.setPen(QColor(self.colours.text))
                side, within = QRectF(self.width() - right, top, right, high), Qt.AlignmentFlag.AlignVCenter
                painter.drawText(QRectF(0, top, left, high), within | Qt.AlignmentFlag.AlignLeft, one.title)
                painter.drawText(side, within | Qt.AlignmentFlag.AlignRight, one.figure)
                painter.fillRect(QRectF(left, middle, room + _MARK, 1), QColor(self.colours.border))
                colour = QColor(self.colours.accent if one.chosen else self.colours.muted)
                for time in one.times:
                    painter.fillRect(QRectF(left + time * room, middle - 0.3 * high, _MARK, 0.6 * high), colour)


class GridPanel(QWidget):
    def __init__(self, colours: Colours, search: Action, open_: Action, save: Action) -> None:
        super().__init__()
        self._search = search
        self._grid: PlacedGrid | None = None
        self._searched: Searched | None = None
        self._objective = ""
        self._trial: Trial | None = None
        self._trials = 0
        self.headline = build.words("title", name="Summary")
        self.details = build.words("muted", name="Details", selectable=True)
        self.search_button = ActionButton(search, look="primary")
        top = build.row((self.headline, 1), self.search_button, ActionButton(open_), ActionButton(save))
        self.ruler = build.named(Ruler(colours), "Times of the evaluations, from noise to speech")
        self.pages = Invited(build.column(top, self.ruler, self.details, 1))
        self.pages.offer(search)
        self.pages.offer(open_)
        build.fill(VBoxLayout(self), [self.pages], (GAP,) * 4)
        self.setFocusProxy(self.ruler)
        search.changed.connect(self._show)
        self._show()

    def set_grid(self, grid: PlacedGrid | None, searched: Searched | None, objective: str) -> None:
        """Show the grid in use, if any. ``searched``: the search by ``objective`` that found it, if known."""
        self._grid, self._searched, self._objective = grid, searched, objective
        self._show()

    def begin(self, objective: str) -> None:
        self._objective, self._trial, self._trials = objective, None, 0
        self._show()

    def add_trials(self, trials: list[Trial]) -> None:
        self._trials += len(trials)
        self._trial = next((one for one in reversed(trials) if one.best), self._trial)
        self._show()

    def end(self) -> None:
        self._trial, self._trials = None, 0
        self._show()

    def _show(self) -> None:
        trial, grid, searched = self._trial, self._grid, self._searched
        times = trial.times if trial is not None else grid.times if grid is not None else None
        self.pages.show_content(times is not None)
        if times is None:
            self.pages.invite(self._search.reason or "Press Search times to place the evaluations for this model.")
            return
        steps = len(times) - 1
        value, others = None, known_rows(steps)
        if trial is not None:
            value = trial.value
            self.headline.setText(f"Searching {steps} evaluations: {counted(self._trials, 'grid', 'grids')} tried")
            self.details.setText("")
        elif grid is not None:
            said = [f"{grid.origin[0].upper()}{grid.origin[1:]}."] if grid.origin else []
            said += [f"Placed for {grid.solver}.", "Left: noise; right: speech."]
            if searched is not None:
                value = searched.best.value
                others = [Row(one.title, one.trial.times, self._figure(one.trial.value)) for one in searched.starts]
                higher = self._objective != DISTANCE and metric(self._objective).better == HIGHER
                better = "higher is better" if higher else "lower is better"
                said.append(f"Figures: {searched.unit}; {better}, on what was searched on.")
            self.headline.setText(f"{steps} evaluations at searched times")
            self.details.setText(" ".join(said))
        self.ruler.show_rows([Row("Searched", times, self._figure(value), chosen=True), *others])

    def _figure(self, value: tuple[float, ...] | None) -> str:
        known = None if value is None else figure_of(value, self._objective)
        return "" if known is None else displayed(figure_text(known, self._objective))


def known_rows(steps: int) -> list[Row]:
    spacings = [(f"EPSS {steps}", "epss", -1.0)] if effective_spacing(steps, "epss") == "epss" else []
    spacings += [("sway −1", "uniform", -1.0), ("even", "uniform", 0.0)]
    return [Row(title, tuple(time_grid(steps, spacing, sway).tolist())) for title, spacing, sway in spacings]
