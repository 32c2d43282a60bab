"""Roofline: the time of every component against its least on this machine, without techniques (A) and with them (B)."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QTableWidgetItem

from paretone.errors import PlainError
from paretone.measure.roofline import ceilings
from paretone.measure.roofline.ceilings import Ceilings
from paretone.measure.roofline.report import MEANINGS, Component, Phase, RooflineReport, on_paper, shares
from paretone.models.voices import shown_name
from paretone_app.features.roofline.plots import RooflinePlot, RooflinePoint, Waterfall, floor_words, milliseconds
from paretone_app.numbers import aligned, decimals, fixed, general, grouped, percent, significant
from paretone_app.plotting import files
from paretone_app.plotting.sheet import Sheet
from paretone_app.shell.colours import LIGHT, Colours
from paretone_app.shell.theme import set_look, text_font
from paretone_app.shell.workspaces import recolour
from paretone_app.state.playing import SIDES
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.panel_parts import CopyKey, JobProgress, TextsTable, export_buttons
from paretone_app.widgets.side_panel import SidePanel

COLUMNS = (
    ("Component", "A part of a forward pass, in all layers"),
    ("Calls", "Calls in the whole utterance; fewer if layers or steps are skipped"),
    ("MFLOP", "Millions of operations of one call; a multiply-add is two"),
    ("MB", "Least traffic of one call: weights, inputs and outputs once"),
    ("Launches", "Kernels per call; on CPUs, operators per call"),
    ("Floor, ms", "Least time of all calls: the longer of arithmetic and traffic at the measured ceilings"),
    ("Measured, ms", "Measured time of all calls"),
    (
        "× floor",
        "Measured time over floor; at the floor within 5 % of 1. Below the floor: that is of copies in main memory, "
        "and caches are faster, or of the matrix product that the ceiling was measured with",
    ),
    ("Bound by", "What takes longest: arithmetic, memory traffic, or kernel launches (operator calls)"),
)


def head_of(phase: Phase) -> str:
    each = "" if phase.whole_seconds is None else f"{significant(phase.whole_seconds * 1e3)} ms each"
    by_layer = f" ({phase.launches_by_layer})" if phase.launches_by_layer else ""
    launches = f"{grouped(phase.launches)} launches each{by_layer}"
    parts = phase.shape, *filter(None, (each, launches, "as a CUDA graph" if phase.graphed else ""))
    return f"{phase.title}: {general(phase.forwards)} × {'; '.join(parts)}"


def cells(report: RooflineReport, phase: Phase, one: Component) -> tuple[str, ...]:
    """Texts of a row, in the order of :data:`COLUMNS`."""
    known = report.ceilings
    counted = bool(one.work.operations or one.work.bytes)
    precision = f" ({one.precision})" if one.precision not in ("", "float32") else ""
    return (
        f"{one.title}{precision}",
        general(one.calls, 3),
        significant(one.work.operations / 1e6) if counted else "–",
        significant(one.work.bytes / 1e6) if counted else "–",
        general(one.launches, 3),
        significant(one.floor(known) * 1e3) if counted else "–",
        "–" if one.total_seconds is None else significant(one.total_seconds * 1e3),
        floor_words(one, known),
        phase.bound(one, known) or "–",
    )


class RooflineTable(TextsTable):
    row_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Components", COLUMNS, numbers=range(1, len(COLUMNS) - 1))
        self._report: RooflineReport | None = None
        self._lines: dict[int, int] = {}
        self.setSelectionMode(TextsTable.SelectionMode.SingleSelection)
        self.currentCellChanged.connect(self._choose)
        CopyKey(self, self.as_text)

    def show_report(self, report: RooflineReport | None) -> None:
        self._report = report
        with QSignalBlocker(self):
            self.clearSpans()
            self.setRowCount(0)
            self._lines.clear()
            if report is not None:
                self._fill(report)

    def _fill(self, report: RooflineReport) -> None:
        number, sides = 0, Qt.AlignmentFlag
        bold = text_font(self.font(), strong=True)
        texts = [cells(report, phase, one) for phase in report.phases for one in phase.rows()]
        places = [max(map(decimals, column), default=0) for column in zip(*texts, strict=True)]
        for phase in report.phases:
            line = self.rowCount()
            self.insertRow(line)
            head = QTableWidgetItem(head_of(phase))
            head.setFont(bold)
            head.setToolTip(head.text())
            head.setFlags(Qt.ItemFlag.ItemIsEnabled)
            self.setItem(line, 0, head)
            self.setSpan(line, 0, 1, len(COLUMNS))
            for one in phase.rows():
                line = self.rowCount()
                self.insertRow(line)
                below = one.why_below_floor(report.ceilings)
                parts = MEANINGS[one.name], one.note.capitalize(), f"Below its floor: {below}" if below else ""
                tip = " ".join(f"{part}." for part in parts if part)
                for column, text in enumerate(texts[number]):
                    item = QTableWidgetItem(aligned(text, places[column]) if column else f"    {text}")
                    side = sides.AlignLeft if column in (0, len(COLUMNS) - 1) else sides.AlignRight
                    item.setTextAlignment(side | sides.AlignVCenter)
                    item.setToolTip(tip)
                    self.setItem(line, column, item)
                self._lines[number] = line
                number += 1

    def choose(self, row: int) -> None:
        if row in self._lines:
            with QSignalBlocker(self):
                self.setCurrentCell(self._lines[row], 0)

    def as_text(self) -> str:
        lines, report = ["\t".join(title for title, _ in COLUMNS)], self._report
        if report is None:
            return lines[0]
        for phase in report.phases:
            lines.append(head_of(phase))
            lines += ["\t".join(cells(report, phase, one)) for one in phase.rows()]
        return "\n".join(lines)

    def _choose(self, line: int) -> None:
        if (row := next((row for row, one in self._lines.items() if one == line), None)) is not None:
            self.row_chosen.emit(row)


_SHARES = (0.25, 0.075, 0.085, 0.085, 0.075, 0.1, 0.1, 0.08, 0.08)
"""Widths of the table's columns, as shares of the sheet's width."""

Reports = dict[str, RooflineReport | None]


def _sheet(reports: Reports, at: RooflinePoint | None, font: QFont) -> Sheet:
    """``at``: the component to mark."""
    colours = LIGHT
    plot, bars = RooflinePlot(colours, on_paper=True), Waterfall(colours, on_paper=True)
    for chart in (plot, bars):
        chart.show_reports(reports)
    if at is not None:
        plot.choose(at.side, at.row)
    made = Sheet(1200, colours, font)
    made.charts([plot, bars], 470)
    for side in SIDES:
        if (report := reports[side]) is None:
            continue
        words = f"{side}: {report.title}, {milliseconds(report.total)}; floor {milliseconds(report.floor)}"
        made.heading(words, colours.baseline if side == "A" else colours.accelerated)
        made.row(tuple(title for title, _ in COLUMNS), _SHARES, colours.muted, bold=True)
        for phase in report.phases:
            made.heading(head_of(phase), colours.text)
            for one in phase.rows():
                made.row(cells(report, phase, one), _SHARES, colours.text)
    report = next(one for one in reports.values() if one is not None)
    spoken = f"“{report.text}” by {shown_name(report.voice)}"
    made.paragraph(f"{spoken}. {report.ceilings.clock}. {report.machine}. {report.created[:10]}.")
    return made


_INVITATION = (
    "The time of each component, over the least that this machine needs for its operations and memory traffic: the "
    "model speaks the sentence once, then each component runs alone."
)


_SECONDS = (
    "This is the time of the forward passes and of the decoder by the clock that is named. A take's own seconds are "
    "wall time of the whole synthesis: text, voice and joining included, with all processors at work at once."
)


class RooflinePanel(SidePanel):
    """Top: measuring. Middle: the roofline plot next to the waterfall. Bottom: the table of one side."""

    def __init__(
        self, colours: Colours, can: Mapping[str, Action], measure: Mapping[str, Action], save: Sequence[Action]
    ) -> None:
        """``measure``: one action per side; ``save``: one per file format."""
        super().__init__("the table of", colours, first="A")
        self.can, self._measure, self._save = can, measure, save
        self._reports: Reports = dict.fromkeys(SIDES)
        self._running: str | None = None
        self._said, self._look = "", "muted"
        self._build(colours)
        recolour(self, colours)
        self._show()

    def _build(self, colours: Colours) -> None:
        em = self.fontMetrics().height()
        can = self.can
        self.measure_buttons = {side: ActionButton(action) for side, action in self._measure.items()}
        for action in self._measure.values():
            action.changed.connect(self._show_state)
        self.again_button = ActionButton(can["again"])
        tip = "Ceilings to compare with: this machine's, measured, or on paper another card's, as stated"
        cards: list[tuple[str, Ceilings]] = []
        try:
            cards = [(one.device, one) for one in ceilings.cards().values()]
        except PlainError as error:
            self._said, self._look = str(error), "warning"
        # Narrow, so that Cancel and the progress of a measurement have room next to it and push nothing away.
        self.ceilings_box = build.narrow(build.combo("Ceilings", [("This machine", None), *cards], tip), 8)
        self.ceilings_box.currentIndexChanged.connect(self._show)
        self.cancel_button = ActionButton(can["cancel"], "Cance&l")
        self.progress = JobProgress("Progress of the measurement")
        self.progress.setMaximumWidth(16 * em)
        self.progress.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.state = build.label(look="muted", yielding=True)
        for action in self._save:
            action.explain(lambda: "" if any(self._reports.values()) else "Measure first.")
        self.trace_button = ActionButton(can["trace"])
        placed: list[build.Placed] = [*self.measure_buttons.values(), self.again_button, self.ceilings_box]
        exports = export_buttons(self._save)
        placed += [self.cancel_button, (self.progress, 1), (self.state, 1), exports, self.trace_button]
        top = build.fill(HBoxLayout(), placed)
        self.plot, self.bars, self.table = RooflinePlot(colours), Waterfall(colours), RooflineTable()
        self.plot.chosen.connect(self._choose)
        self.table.row_chosen.connect(lambda row: self._choose(self.side, row))
        self._plots = build.splitter(Qt.Orientation.Horizontal, [(self.plot, 0), (self.bars, 0)], [34 * em, 30 * em])
        self.headline = build.words("title", name="Summary")
        self.table_button = build.button(
            "&Table", tip="Show the table instead of the plots; a taller panel has room for both"
        )
        self.table_button.setCheckable(True)
        self.table_button.toggled.connect(self._share_room)
        line = build.row(self.side_buttons, (self.headline, 1), self.table_button)
        parts = build.splitter(Qt.Orientation.Vertical, [(self._plots, 0), (self.table, 0)], [22 * em, 12 * em])
        outer = VBoxLayout(self)
        outer.addLayout(top)
        self.pages = Invited(build.column(line, (parts, 1)))
        self.pages.offer(self._measure["A"])
        outer.addWidget(self.pages, 1)
        self.setFocusProxy(self.measure_buttons["A"])

    def set_model(self, model: str) -> None:
        """Set the loaded model; discard reports of another."""
        shown = next((one for one in self._reports.values() if one is not None), None)
        if model and shown is not None and shown.model != model:
            self._reports = dict.fromkeys(SIDES)
            self._said = ""
            self._show()

    def begin(self, side: str) -> None:
        self._running, self._said = side, ""
        self.progress.begin()
        self._show_state()

    def say(self, text: str) -> None:
        if self._running is not None:
            self._said, self._look = text, "muted"
            self._show_state()

    def show_report(self, side: str, report: RooflineReport) -> None:
        self._reports[side] = report
        self.side = side
        self._show()

    def end(self, said: str = "", failed: bool = False) -> None:
        self._running = None
        self._said, self._look = said, "warning" if failed else "muted"
        self._show_state()

    def write(self, path: Path) -> None:
        """Write the reports as SVG, PNG or CSV, by the ending of ``path``. Raises :class:`PlainError` if that fails."""
        reports = self.reports
        sheet = partial(_sheet, reports, self.plot.at, self.font())
        table = "".join(f"# side: {side}\n{one.to_csv()}" for side, one in reports.items() if one is not None)
        described = self.bars.describe()
        content = {
            ".svg": lambda: sheet().svg("Roofline", described),
            ".png": lambda: sheet().png(),
            ".csv": table.encode,
        }
        files.write(path, content)

    @property
    def reports(self) -> Reports:
        """As shown: measured, or on paper for the chosen card."""
        card = self.ceilings_box.currentData()
        measured = self._reports.items()
        return {side: one if one is None or card is None else on_paper(one, card) for side, one in measured}

    def has_side(self, side: str) -> bool:
        return self._reports[side] is not None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_room()

    def _share_room(self) -> None:
        """Show plots above table if the panel is high enough, else one of them."""
        low = self.height() < 34 * self.fontMetrics().height()
        self.table_button.setVisible(low)
        self._plots.setVisible(not (low and self.table_button.isChecked()))
        self.table.setVisible(not low or self.table_button.isChecked())

    def _show(self) -> None:
        super()._show()
        for action in (self.can["again"], self.can["trace"]):
            action.refresh()
        reports = self.reports
        report = reports[self.side]
        self.pages.show_content(report is not None)
        self.plot.show_reports(reports)
        self.bars.show_reports(reports)
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
        for action in self._save:
            action.refresh()
        waiting = self._measure["A"].reason if idle and not shown else ""
        self.state.setText(self._said)
        self.state.setToolTip(self._said)
        set_look(self.state, self._look)
        self.pages.invite(waiting or _INVITATION)

    def _choose(self, side: str, row: int) -> None:
        if side != self.side:
            self.show_side(side)
        self.plot.choose(side, row)
        self.table.choose(row)


def summary(report: RooflineReport) -> str:
    found = {name: share for name, share in shares(report).items() if share >= 0.005 and name != "uncounted"}
    if not report.measured:
        return (
            f"On paper, {report.ceilings.device}: a floor of {milliseconds(report.floor)} for "
            f"{fixed(report.audio_seconds, 1)} s of audio; {grouped(report.launches)} launches, "
            f"{milliseconds(report.ceilings.launching(report.launches))} at "
            f"{significant(report.ceilings.launch_seconds * 1e6)} µs each"
        )
    bound = ", ".join(f"{name} {percent(share)}" for name, share in sorted(found.items(), key=lambda one: -one[1]))
    return (
        f"{milliseconds(report.measured)} for {fixed(report.audio_seconds, 1)} s of audio ({report.ceilings.clock}), "
        f"{fixed(report.measured / report.floor, 1)}× the floor of {milliseconds(report.floor)}; bound by {bound}; "
        f"{grouped(report.launches)} launches"
    )
