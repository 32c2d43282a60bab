"""The queue panel: a row per job, to reorder and to cancel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QProgressBar, QSizePolicy

from paretone_app.shell.theme import GAP, NEAR
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import Flow, VBoxLayout
from paretone_app.widgets.panel_parts import ShownPanel, TextsTable

_EMPTY = "Nothing runs or waits: what you ask for while something runs waits here, and can be reordered and cancelled."
_COLUMNS = (
    ("Job", "What it does; a take with its text"),
    ("Setting", "Techniques, and options that differ from the model's own"),
    ("Model", "The model that it needs; jobs of one model follow each other, so that it is loaded once"),
    ("State", "Runs, waits, or is of the last session"),
    ("Ends", "Expected time of its end, as far as the times of such jobs are known"),
)
_STATE = 3


@dataclass(frozen=True)
class Row:
    number: int
    title: str
    setting: str
    model: str
    state: str
    ends: str
    share: float | None = None
    """Done so far, 0 to 1; ``None`` if unknown."""
    runs: bool = False


class _Rows(TextsTable):
    """Rows that can be dragged."""

    dropped = Signal(int)
    """The row before which the chosen one was dropped."""

    def __init__(self) -> None:
        super().__init__("Queue", _COLUMNS, widths=(12, 14, 6, 7, 4))
        self.horizontalHeader().setStretchLastSection(False)
        self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setWordWrap(False)

    def dropEvent(self, event: QDropEvent) -> None:
        place = self.indexAt(event.position().toPoint())
        below = self.dropIndicatorPosition() == QAbstractItemView.DropIndicatorPosition.BelowItem
        event.setDropAction(Qt.DropAction.IgnoreAction)  # The queue moves the row.
        event.accept()
        self.dropped.emit(place.row() + below if place.isValid() else self.rowCount())


class QueuePanel(ShownPanel):
    moved = Signal(int, int)
    """Number of a job, and the row where it shall be."""

    def __init__(self, can: Mapping[str, Action]) -> None:
        super().__init__()
        self._jobs: list[Row] = []
        self.withdrawn: int | None = None
        """Number of the job that the user cancelled: the row in its place is chosen next."""
        self.table = _Rows()
        self.table.setMinimumHeight(3 * self.fontMetrics().height())
        self.table.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)  # The buttons come first.
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        buttons = Flow()
        shown = {name: ActionButton(action) for name, action in can.items()}
        for button in shown.values():
            button.action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            self.table.addAction(button.action)
            buttons.add(button)
        self.go_on = shown["go_on"]
        buttons.arrange()
        self.pages = Invited(self.table, _EMPTY)
        build.fill(VBoxLayout(self), ((self.pages, 1), buttons), (GAP, NEAR, GAP, NEAR)).setSpacing(NEAR)
        self.table.dropped.connect(self._drop)
        for action in (can["earlier"], can["later"], can["cancel"]):
            self.table.itemSelectionChanged.connect(action.refresh)

    @property
    def chosen(self) -> Row | None:
        row = self.table.currentRow()
        return self._jobs[row] if 0 <= row < len(self._jobs) and self.table.selectedItems() else None

    def show_jobs(self, jobs: Sequence[Row], left: bool) -> None:
        """Show these, the running one first; the choice stays. ``left``: whether some are of the last session."""
        self.go_on.setVisible(left)
        chosen, at, column = self.chosen, self.table.currentRow(), max(0, self.table.currentColumn())
        self._jobs = list(jobs)
        self.table.show_rows([(one.title, one.setting, one.model, one.state, one.ends) for one in jobs])
        for row, one in enumerate(jobs):  # How far it is would be said again and again.
            said = f"{row + 1} of {len(jobs)}: {one.title}", one.setting, one.model, one.state.partition(",")[0]
            place = self.table.model().index(row, 0)
            self.table.model().setData(place, ". ".join(filter(None, said)), Qt.ItemDataRole.AccessibleTextRole)
        self.pages.show_content(bool(jobs))
        row = next((place for place, one in enumerate(jobs) if chosen and one.number == chosen.number), None)
        if row is None and jobs and chosen and chosen.number == self.withdrawn:
            row = min(at, len(jobs) - 1)
        if row is None:
            self.table.clearSelection()
        elif row != self.table.currentRow() or not self.table.selectedItems():
            flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
            self.table.setCurrentCell(row, column, flags)
        for row, one in enumerate(jobs):
            bar = self.table.cellWidget(row, _STATE)  # Of the running job.
            if not one.runs or one.share is None:
                self.table.removeCellWidget(row, _STATE)
                continue
            if not isinstance(bar, QProgressBar):
                bar = build.named(QProgressBar(minimum=0, maximum=100, format="%p %"), "Progress of the running job")
                self.table.setCellWidget(row, _STATE, bar)
            bar.setValue(round(100 * one.share))

    def _drop(self, row: int) -> None:
        if (chosen := self.chosen) is not None:
            before = next(place for place, one in enumerate(self._jobs) if one.number == chosen.number)
            self.moved.emit(chosen.number, row - (before < row))
