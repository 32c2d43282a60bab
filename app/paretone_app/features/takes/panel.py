"""Takes: history with figures, differences of settings, star, re-run with a change, delete, export."""

import html
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QItemSelectionRange, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QResizeEvent, QUndoStack
from PySide6.QtWidgets import QCheckBox, QLineEdit, QMessageBox, QSizePolicy

from paretone.audio.recording import write_sound
from paretone.errors import PlainError, told
from paretone.setting.library import TakeSummary
from paretone.setting.take import Take
from paretone_app.features.takes.table import COLUMNS, TAKE_ROLE, FailedTake, TakesModel, Unmade, WaitingTake
from paretone_app.numbers import counted
from paretone_app.results.takes import KeptTakes
from paretone_app.shell import file_dialogs
from paretone_app.shell.colours import Colours
from paretone_app.shell.entries import SEARCH
from paretone_app.shell.theme import GAP, NEAR
from paretone_app.state.availability import require
from paretone_app.state.comparison import Comparison
from paretone_app.state.differences import difference_words, differences
from paretone_app.state.editing import Edit
from paretone_app.state.playing import LANES
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import Flow, VBoxLayout
from paretone_app.widgets.panel_parts import RowsTable, ShownPanel

_DELETED_ONE = "Its audio file is deleted, too. Undo brings it back until another model is loaded or calibrated."
_DELETED_MANY = "Their audio files are deleted, too. Undo brings them back until another model is loaded or calibrated."
_SHORTEST = 12
"""Least width of a shortened text, in digits."""


class TakesPanel(ShownPanel):
    problem = Signal(str)
    cancelled = Signal(object)
    """Numbers of jobs whose takes the user does not want any more."""

    def __init__(self, kept: KeptTakes, colours: Colours, can: Mapping[str, Action], undo_stack: QUndoStack) -> None:
        super().__init__()
        self.kept = kept
        self.can = can
        self._colours = colours
        self._reference: Take | None = None
        self._letter = LANES[0]
        self.model = TakesModel(self)
        self.undo_stack = undo_stack
        self._remembered: frozenset[str] = frozenset()

        search = build.clearable(QLineEdit(placeholderText="Filter by model, text, setting or voice"))
        self.search = build.named(search, "Filter takes")
        self.search.setProperty(SEARCH, True)
        self.starred = build.named(QCheckBox("Starred onl&y"), tip="Show takes with a star")
        self._faulty = build.named(QCheckBox("Fau&lty only"), tip="Show takes in which a check found a fault")
        self._faulty.toggled.connect(self._apply_filter)
        self.search.textChanged.connect(self._apply_filter)
        self.starred.toggled.connect(self._apply_filter)

        self.table = RowsTable("Takes", RowsTable.SelectionMode.ExtendedSelection)
        self.table.setModel(self.model)
        self.table.setDragEnabled(True)
        self.table.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # A setting ends with its seed.
        # Ignore its size hint: it scrolls, and the buttons below stay visible.
        self.table.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.table.setMinimumHeight(3 * self.fontMetrics().height())
        self.table.sortByColumn(len(COLUMNS) - 1, Qt.SortOrder.DescendingOrder)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.table.selectionModel().selectionChanged.connect(self._enable)
        unit, header = self.fontMetrics().horizontalAdvance("0"), self.table.horizontalHeader()
        for number, column in enumerate(COLUMNS):
            self.table.setColumnWidth(number, column.width * unit)
        header.setMinimumSectionSize(3 * unit)
        header.setResizeContentsPrecision(0)  # Visible rows only: reading thousands takes too long.
        self._by_hand: set[int] = set()
        self._fits = False
        self._fitting = QTimer(self, singleShot=True, interval=0)
        self._fitting.timeout.connect(lambda: self.when_seen(self._fit))
        header.sectionResized.connect(lambda number, *_: None if self._fits else self._by_hand.add(number))
        seen = self.model.modelReset, self.model.rowsInserted, self.model.dataChanged
        for signal in (*seen, self.table.verticalScrollBar().valueChanged):
            signal.connect(lambda *_: self._fitting.start())

        for action in (can["lane"], can["star"], can["delete"]):
            action.explain(lambda: "" if self._selected_rows() else "Select takes first.")
        for action in (can["play"], can["set_a"], can["set_b"], can["use"], can["save"], can["reveal"]):
            action.explain(lambda: "" if len(self._selected_rows()) == 1 else "Select one take first.")
        for action in (can["play"], can["set_a"], can["set_b"], can["lane"], can["star"], can["save"], can["reveal"]):
            action.explain(self._why_no_audio)
        buttons = Flow()
        for action in can.values():
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            self.table.addAction(action)
            if action is not can["reveal"]:  # In the menu of the table: all others fit on one line of a small screen.
                buttons.add(ActionButton(action))
        buttons.arrange()
        self.difference = build.words(name="Difference of the selected take to the reference", rich=True)
        self.pages = Invited(self.table, "No takes yet: every synthesis is kept here.", in_a_line=True)
        top = build.row((self.search, 1), self._faulty, self.starred)
        layout = build.fill(VBoxLayout(self), (top, (self.pages, 1), self.difference, buttons), (GAP, NEAR, GAP, NEAR))
        layout.setSpacing(NEAR)
        self.model.modelAboutToBeReset.connect(self._remember_selection)
        self.model.modelReset.connect(self._restore_selection)
        kept.changed.connect(self._show_takes)
        self._show_takes()

    def _fit(self) -> None:
        """Widen columns to their visible contents, icons included. Shorten long texts instead, further so if the
        first figure would be cut off."""
        header, self._fits = self.table.horizontalHeader(), True
        for number, column in enumerate(COLUMNS):
            if not column.shortened and number not in self._by_hand:
                needed = max(self.table.sizeHintForColumn(number), header.sectionSizeHint(number))
                self.table.setColumnWidth(number, max(needed, self.table.columnWidth(number)))
        unit = self.fontMetrics().horizontalAdvance("0")
        first = next(number for number, column in enumerate(COLUMNS) if column.wall_time)
        texts = [one for one in range(first) if COLUMNS[one].shortened and one not in self._by_hand]
        wanted = {one: COLUMNS[one].width * unit for one in texts}
        rest = sum(self.table.columnWidth(one) for one in range(first + 1) if one not in wanted)
        over = max(0, rest + sum(wanted.values()) - self.table.viewport().width())
        # The widest shrink most.
        spare = {one: max(0, width - _SHORTEST * unit) for one, width in wanted.items()}
        share = min(1.0, over / max(1, sum(spare.values())))
        for one, width in wanted.items():
            self.table.setColumnWidth(one, width - math.ceil(share * spare[one]))
        self._fits = False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fitting.start()

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self._show_difference()

    def _show_takes(self) -> None:
        self.model.set_takes(self.kept.all)
        self._enable()

    def add_failed(self, take: FailedTake) -> None:
        self.model.add_failed(take)
        self._enable()

    def show_waiting(self, takes: Sequence[WaitingTake]) -> None:
        self.model.set_waiting(takes)
        self._enable()

    def show_comparison(self, compared: Comparison) -> None:
        self._reference, self._letter = compared.lanes[compared.reference], LANES[compared.reference]
        sides: dict[str, str] = {}
        for take, side in zip(compared.lanes, LANES, strict=False):
            if take is not None:
                sides[take.id] = f"{sides[take.id]}/{side}" if take.id in sides else side
        self.model.set_sides(sides)
        self._show_difference()

    def selected(self) -> list[TakeSummary]:
        return [self.model.index(row, 0).data(TAKE_ROLE) for row in self._selected_rows()]

    def _selected_rows(self) -> list[int]:
        """Selected rows, in order. Uses ranges of whole rows, which is faster than the selection model's list."""
        selection = self.table.selectionModel().selection()
        ranges = map(selection.at, range(selection.count()))
        return sorted({row for one in ranges for row in range(one.top(), one.bottom() + 1)})

    def select(self, takes: Collection[str]) -> None:
        """Select takes by id, as far as shown; scroll to the first."""
        rows = self.model.rows_of(takes)
        chosen = QItemSelection()
        for _, run in itertools.groupby(enumerate(rows), lambda one: one[1] - one[0]):
            together = [row for _, row in run]
            chosen.append(
                QItemSelectionRange(self.model.index(together[0], 0), self.model.index(together[-1], len(COLUMNS) - 1))
            )
        self.table.selectionModel().select(chosen, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        if rows:
            self.table.scrollTo(self.model.index(rows[0], 0))

    def go_to(self, take: str) -> None:
        """Select and focus the take with this id, removing a filter that hides it."""
        if not self.model.rows_of((take,)):
            self.search.clear()
            self.starred.setChecked(False)
            self._faulty.setChecked(False)
        self.select((take,))
        self.table.setFocus()

    def _remember_selection(self) -> None:
        self._remembered = frozenset(one.id for one in self.selected())

    def _restore_selection(self) -> None:
        if self._remembered:
            self.select(self._remembered)
        self._enable()

    def _apply_filter(self) -> None:
        self.model.show_only(self.search.text(), self.starred.isChecked(), self._faulty.isChecked())

    def _enable(self) -> None:
        self.pages.show_content(not self.model.is_empty)
        for action in self.can.values():
            action.refresh()
        self._show_difference()

    def _why_no_audio(self) -> str:
        unmade = (one for one in self.selected() if isinstance(one, Unmade))
        return next((one.why_no_audio for one in unmade), "")

    def _show_difference(self) -> None:
        selected = self.selected() if len(self._selected_rows()) == 1 else []
        if selected and isinstance(selected[0], Unmade):
            reason = html.escape(selected[0].why_no_audio)
            self.difference.setText(f'<span style="color:{self._colours.warning}">{reason}</span>')
            return
        if self._reference is None or len(selected) != 1 or selected[0].id == self._reference.id:
            what = "Select one take to see its differences from {}." if self._reference else "Choose take {} first."
            self.difference.setText(f'<span style="color:{self._colours.muted}">{what.format(self._letter)}</span>')
            return
        take = selected[0]
        parts = []
        for one in differences(self._reference, take):
            colour = self._colours.text if one.technique else self._colours.warning
            what, *values = difference_words(one)
            shown = [html.escape(value if len(value) <= 24 else f"{value[:22]}…") for value in values]
            parts.append(f'<span style="color:{colour}"><b>{html.escape(what)}</b> {shown[0]} → {shown[1]}</span>')
        self.difference.setText(f"Against {self._letter}: " + (" &nbsp;·&nbsp; ".join(parts) or "the same setting"))

    @property
    def chosen(self) -> TakeSummary:
        """The selected take. Raises :class:`PlainError` unless exactly one is selected."""
        selected = self.selected()
        if len(selected) != 1:
            raise PlainError("Select one take in the Takes panel first.")
        return selected[0]

    def load_chosen(self) -> Take:
        """The selected take, with its audio. Raises :class:`PlainError` if there is none."""
        require(self._why_no_audio())
        return self.kept.library.load(self.chosen.id)

    def star(self) -> None:
        """Star the selected takes; if all are starred, unstar them."""
        takes = [take for take in self.selected() if not isinstance(take, Unmade)]
        on = not all(take.starred for take in takes)
        changed = [take.id for take in takes if take.starred != on]

        def put(starred: bool) -> None:
            with told(self.problem.emit):
                self.kept.star(changed, starred)

        if changed:
            name = f"{'star' if on else 'unstar'} {counted(len(changed), 'take', 'takes')}"
            self.undo_stack.push(Edit(name, not on, on, put))

    def delete(self) -> None:
        selected = self.selected()
        if waiting := [one for one in selected if isinstance(one, WaitingTake)]:
            self.cancelled.emit([one.job for one in waiting])
            selected = [one for one in selected if not isinstance(one, WaitingTake)]
        if not selected:
            return
        box = QMessageBox(self)
        box.setWindowTitle("Delete takes")
        box.setText("Delete this take?" if len(selected) == 1 else f"Delete {counted(len(selected), 'take', 'takes')}?")
        box.setInformativeText(_DELETED_ONE if len(selected) == 1 else _DELETED_MANY)
        box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.Cancel)
        box.button(QMessageBox.StandardButton.Yes).setText("Delete")
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        box.accepted.connect(lambda: self._delete(selected))
        build.show(box)

    def _delete(self, takes: Sequence[TakeSummary]) -> None:
        """Delete ``takes``; they can be restored while their undo entry exists."""
        failed = [one for one in takes if isinstance(one, FailedTake)]
        deleted = self.kept.delete([one.id for one in takes if not isinstance(one, FailedTake)])
        if not deleted and not failed:
            return

        def put(there: bool) -> None:
            for one in failed:
                (self.model.add_failed if there else self.model.forget)(one)
            with told(self.problem.emit):
                (self.kept.restore if there else self.kept.delete_again)(deleted)

        name = f"delete {counted(len(deleted) + len(failed), 'take', 'takes')}"
        self.undo_stack.push(Edit(name, True, False, put))

    def ask_where_to_save(self) -> None:
        """Ask for a file and write the selected take's audio. Raises :class:`PlainError` if it cannot be read."""
        take = self.load_chosen()
        name = f"{take.label or 'take'}.wav"
        file_dialogs.ask_where_to_write(
            self, "Save the take", file_dialogs.sound(), name, lambda path: self._save(take, path)
        )

    def _save(self, take: Take, path: Path) -> None:
        try:
            remarks = write_sound(path, take.samples, take.sample_rate)
        except PlainError as error:
            remarks = (str(error),)
        for sentence in remarks:
            self.problem.emit(sentence)

    def reveal(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.kept.library.audio_path(self.chosen.id).parent)))
