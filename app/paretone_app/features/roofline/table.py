"""The roofline's table: every component of every phase, with work, floor, measured time and what bounds it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from paretone.measure.roofline.report import MEANINGS, Component, Phase, RooflineReport
from paretone_app.features.roofline.bars import floor_words
from paretone_app.numbers import general, grouped
from paretone_app.shell.theme import text_font

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
_ROW = Qt.ItemDataRole.UserRole


def head_of(phase: Phase) -> str:
    """A phase in words."""
    parts = [phase.shape]
    if phase.whole_seconds is not None:
        parts.append(f"{general(phase.whole_seconds * 1e3, 3)} ms each")
    launches = f"{grouped(phase.launches)} launches each"
    if phase.launches_by_layer:
        launches += f" ({phase.launches_by_layer})"
    parts.append(launches)
    if phase.graphed:
        parts.append("as a CUDA graph")
    return f"{phase.title}: {general(phase.forwards)} × {'; '.join(parts)}"


def cells(report: RooflineReport, phase: Phase, one: Component) -> tuple[str, ...]:
    """A row's texts, as :data:`COLUMNS`."""
    known = report.ceilings
    counted = bool(one.work.operations or one.work.bytes)
    precision = f" ({one.precision})" if one.precision not in ("", "float32") else ""
    return (
        f"{one.title}{precision}",
        general(one.calls, 4),
        general(one.work.operations / 1e6, 3) if counted else "–",
        general(one.work.bytes / 1e6, 3) if counted else "–",
        general(one.launches, 3),
        general(one.floor(known) * 1e3, 3) if counted else "–",
        "–" if one.total_seconds is None else general(one.total_seconds * 1e3, 4),
        floor_words(one, known),
        phase.bound(one, known) or "–",
    )


def _tip(report: RooflineReport, one: Component) -> str:
    """What a component is, and what is to be known about its figures, in sentences."""
    below = one.why_below_floor(report.ceilings)
    parts = MEANINGS[one.name], one.note.capitalize(), f"Below its floor: {below}" if below else ""
    return " ".join(f"{part}." for part in parts if part)


class RooflineTable(QTableWidget):
    """One report. Ctrl+C copies it as text."""

    row_chosen = Signal(int)
    """The user chose a component, by its row among the report's components."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(COLUMNS), parent)
        self._report: RooflineReport | None = None
        self._lines: dict[int, int] = {}
        """Row of each component."""
        self.setAccessibleName("Components")
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(round(1.5 * self.fontMetrics().height()))
        for number, (title, meaning) in enumerate(COLUMNS):
            head = QTableWidgetItem(title)
            head.setToolTip(meaning)
            head.setTextAlignment(_aligned(number))
            self.setHorizontalHeaderItem(number, head)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
        self.currentCellChanged.connect(self._choose)

    def show_report(self, report: RooflineReport | None) -> None:
        """Show ``report``, or nothing."""
        self._report = report
        self.blockSignals(True)
        self.clearSpans()
        self.setRowCount(0)
        self._lines.clear()
        if report is not None:
            self._fill(report)
        self.blockSignals(False)

    def _fill(self, report: RooflineReport) -> None:
        number = 0
        bold = text_font(self.font(), strong=True)
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
                for column, text in enumerate(cells(report, phase, one)):
                    item = QTableWidgetItem(text if column else f"    {text}")
                    item.setTextAlignment(_aligned(column))
                    item.setData(_ROW, number)
                    item.setToolTip(_tip(report, one))
                    self.setItem(line, column, item)
                self._lines[number] = line
                number += 1

    def choose(self, row: int) -> None:
        """Choose a component by its row among the report's."""
        if row in self._lines:
            self.blockSignals(True)
            self.setCurrentCell(self._lines[row], 0)
            self.blockSignals(False)

    def as_text(self) -> str:
        """The table as tab-separated text."""
        lines, report = ["\t".join(title for title, _ in COLUMNS)], self._report
        if report is None:
            return lines[0]
        for phase in report.phases:
            lines.append(head_of(phase))
            lines += ["\t".join(cells(report, phase, one)) for one in phase.rows()]
        return "\n".join(lines)

    def _choose(self, line: int) -> None:
        row = next((row for row, one in self._lines.items() if one == line), None)
        if row is not None:
            self.row_chosen.emit(row)

    def event(self, event: QEvent) -> bool:
        overrides = event.type() is QEvent.Type.ShortcutOverride
        if isinstance(event, QKeyEvent) and overrides and event.matches(QKeySequence.StandardKey.Copy):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.as_text())
        else:
            super().keyPressEvent(event)


def _aligned(column: int) -> Qt.AlignmentFlag:
    left = column in (0, len(COLUMNS) - 1)
    return (Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight) | Qt.AlignmentFlag.AlignVCenter
