"""Roofline: the measured time of every component against the least that this machine needs for it.

A is the model without techniques, B with those in use. The panel is given its actions and knows neither the
application's state nor the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from paretone.measure.roofline.report import RooflineReport, shares
from paretone_app.features.roofline.bars import Waterfall, milliseconds
from paretone_app.features.roofline.plot import RooflinePlot
from paretone_app.features.roofline.sheet import write
from paretone_app.features.roofline.table import RooflineTable
from paretone_app.numbers import fixed, grouped, percent
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build, sketching
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.panel_parts import ExportButtons, JobProgress
from paretone_app.widgets.side_panel import SIDES, SidePanel

_ROOM_FOR_BOTH = 34
"""In heights of the font: in a lower panel, plots and table share one place."""
_INVITATION = (
    "Press Measure A: the model speaks the sentence once, then each component runs alone. Their times are compared "
    "with the least time that this machine needs for their operations and memory traffic. Measure B does the same "
    "with the techniques in use."
)


_SECONDS = (
    "This is the time of the forward passes and of the decoder by the clock that is named. A take's own seconds are "
    "wall time of the whole synthesis: text, voice and joining included, with all processors at work at once."
)


@dataclass(frozen=True)
class RooflineActions:
    measure: Mapping[str, Action]
    """By side."""
    again: Action
    """Measures the machine, then the shown side."""
    trace: Action
    cancel: Action


class RooflinePanel(SidePanel):
    """Above: measuring. Then the plot next to the waterfall, and the table of one side."""

    export_wanted = Signal(str)
    """The user wants all that is shown as a file with this ending."""

    def __init__(self, colours: Colours, can: RooflineActions, parent: QWidget | None = None) -> None:
        super().__init__("the table of", colours, parent, first="A")
        self.can = can
        self._reports: dict[str, RooflineReport | None] = dict.fromkeys(SIDES)
        self._running: str | None = None
        self._said, self._look = "", "muted"
        self._build(colours)
        self.set_colours(colours)
        self._show()

    def _build(self, colours: Colours) -> None:
        em = self.fontMetrics().height()
        can = self.can
        self.measure_buttons = {side: ActionButton(action) for side, action in can.measure.items()}
        top = HBoxLayout()
        for side, button in self.measure_buttons.items():
            can.measure[side].changed.connect(self._show_state)
            top.addWidget(button)
        self.again_button = ActionButton(can.again)
        top.addWidget(self.again_button)
        self.cancel_button = ActionButton(can.cancel, "Cance&l")
        top.addWidget(self.cancel_button)
        self.progress = JobProgress("Progress of the measurement")
        self.progress.setMaximumWidth(16 * em)
        top.addWidget(self.progress)
        self._state = build.label(look="muted", yielding=True)
        top.addWidget(self._state, 1)
        self.exports = ExportButtons("plots and table")
        self.exports.wanted.connect(self.export_wanted)
        top.addWidget(self.exports)
        self.trace_button = ActionButton(can.trace)
        top.addWidget(self.trace_button)

        self.plot, self.bars, self.table = RooflinePlot(colours), Waterfall(colours), RooflineTable()
        self.plot.chosen.connect(self._choose)
        self.table.row_chosen.connect(lambda row: self._choose(self._side, row))
        self._plots = build.splitter(Qt.Orientation.Horizontal, [(self.plot, 0), (self.bars, 0)], [34 * em, 30 * em])
        line = HBoxLayout()
        line.addWidget(self.side_buttons)
        self.headline = build.words("title", name="Summary")
        line.addWidget(self.headline, 1)
        self.table_button = build.button(
            "&Table", tip="Show the table instead of the plots; a taller panel has room for both"
        )
        self.table_button.setCheckable(True)
        self.table_button.toggled.connect(self._share_room)
        line.addWidget(self.table_button)
        parts = build.splitter(Qt.Orientation.Vertical, [(self._plots, 0), (self.table, 0)], [22 * em, 12 * em])
        outer = VBoxLayout(self)
        outer.addLayout(top)
        self.pages = Invited(build.column(line, (parts, 1)), sketch=sketching.bars(6))
        self.pages.offer(can.measure["A"])
        outer.addWidget(self.pages, 1)
        self.setFocusProxy(self.measure_buttons["A"])

    # --- Methods in --------------------------------------------------------------------------------------------------
    def set_model(self, model: str) -> None:
        """Which model is loaded; what was measured of another is put away."""
        shown = next((one for one in self._reports.values() if one is not None), None)
        if model and shown is not None and shown.model != model:
            self._reports = dict.fromkeys(SIDES)
            self._said = ""
            self._show()

    def begin(self, side: str) -> None:
        """This side is being measured."""
        self._running, self._said = side, ""
        self.progress.begin()
        self._show_state()

    def say(self, text: str) -> None:
        """Show the present activity of the measurement."""
        if self._running is not None:
            self._said, self._look = text, "muted"
            self._show_state()

    def show_progress(self, done: int, total: int, seconds_left: float | None) -> None:
        """Show progress of the measurement."""
        if self._running is not None:
            self.progress.show_progress(done, total, seconds_left)

    def show_report(self, side: str, report: RooflineReport) -> None:
        """Show the report of a side."""
        self._reports[side] = report
        self._side = side
        self._show()

    def end(self, said: str = "", failed: bool = False) -> None:
        """The measurement ended; ``said`` says why it gave nothing."""
        self._running = None
        self._said, self._look = said, "warning" if failed else "muted"
        self._show_state()

    def write(self, path: Path) -> None:
        """Write all that is shown; see :func:`paretone_app.features.roofline.sheet.write`."""
        write(self._reports, self.plot.at, self.bars.describe(), path, self.font())

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.plot.set_colours(colours)
        self.bars.set_colours(colours)
        self.side_buttons.set_colours(colours)

    @property
    def reports(self) -> dict[str, RooflineReport | None]:
        """The measured reports."""
        return dict(self._reports)

    @property
    def state(self) -> str:
        """The sentence next to the buttons."""
        return self._state.text()

    # --- Showing -----------------------------------------------------------------------------------------------------
    def has_side(self, side: str) -> bool:
        return self._reports[side] is not None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_room()

    def _share_room(self) -> None:
        """Plots and table beneath each other where both are of use, else one of them."""
        low = self.height() < _ROOM_FOR_BOTH * self.fontMetrics().height()
        self.table_button.setVisible(low)
        self._plots.setVisible(not (low and self.table_button.isChecked()))
        self.table.setVisible(not low or self.table_button.isChecked())

    def _show(self) -> None:
        super()._show()
        for action in (self.can.again, self.can.trace):
            action.refresh()
        report = self._reports[self._side]
        self.pages.show_content(report is not None)
        self.plot.show_reports(self._reports)
        self.bars.show_reports(self._reports)
        self.table.show_report(report)
        if report is not None:
            self.headline.setText(summary(report))
            self.headline.setToolTip("\n".join([summary(report), _SECONDS, *report.notes, report.machine]))
        self._show_state()

    def _show_state(self) -> None:
        idle, shown = self._running is None, any(self._reports.values())
        for side, button in self.measure_buttons.items():
            primary = side == "A" if self._reports["A"] is None else side == "B"
            set_look(button, "primary" if primary and button.isEnabled() else "")
        self.cancel_button.setVisible(not idle)
        self.progress.setVisible(not idle)
        self.exports.setEnabled(shown)
        waiting = self.can.measure["A"].reason if idle and not shown else ""
        self._state.setText(self._said)
        self._state.setToolTip(self._said)
        set_look(self._state, self._look)
        self.pages.invite(waiting or _INVITATION)

    def _choose(self, side: str, row: int) -> None:
        if side != self._side:
            self.show_side(side)
        self.plot.choose(side, row)
        self.table.choose(row)


def summary(report: RooflineReport) -> str:
    """A report in a sentence."""
    found = {name: share for name, share in shares(report).items() if share >= 0.005 and name != "uncounted"}
    bound = ", ".join(f"{name} {percent(share)}" for name, share in sorted(found.items(), key=lambda one: -one[1]))
    return (
        f"{milliseconds(report.measured)} for {fixed(report.audio_seconds, 1)} s of audio ({report.ceilings.clock}), "
        f"{fixed(report.measured / report.floor, 1)}× the floor of {milliseconds(report.floor)}; bound by {bound}; "
        f"{grouped(report.launches)} launches"
    )
