"""Strategy: the table of skips by layer and step; edited by hand, filled in live, compared."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtGui import QUndoStack
from PySide6.QtWidgets import QAbstractItemView, QCheckBox, QLabel, QSizePolicy, QStackedWidget, QTableView, QWidget

from paretone.sampling.actions import SkipAction
from paretone.sampling.operations import OperationCounts
from paretone.techniques.ditreducio.record import CALIBRATION, END, PRE_CALIBRATION, Trial
from paretone.techniques.ditreducio.table import StrategyTable
from paretone_app.features.strategy import grid
from paretone_app.numbers import general, localised, percent, times
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, icon, set_look
from paretone_app.shell.workspaces import recolour
from paretone_app.state.editing import Edit
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, IconButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.panel_parts import CopyKey

CHECK = "check"
"""The calibration's first pass, before any trial."""
ONE_BRANCH_REASON = "Without guidance there is only one branch, so none can be skipped."
_NEXT = {SkipAction.NONE: SkipAction.TS, SkipAction.TS: SkipAction.BS, SkipAction.BS: SkipAction.NONE}
_PASSES = {
    CHECK: ("Pass 1 of 3, check", "how diagonal is every layer's attention?"),
    PRE_CALIBRATION: ("Pass 2 of 3, pre-calibration", "the most diagonal cells try temporal skipping"),
    CALIBRATION: ("Pass 3 of 3, calibration", "all other cells try temporal, then branch skipping"),
    END: ("End of the trajectory", "skips are chosen by what they do to the last state"),
}


class StrategyPanel(QWidget):
    """Strategy table: view, edit with undo, compare with a reference table, follow a running calibration."""

    table_edited = Signal(object)
    """The user edited the table, or undid an edit: the new :class:`StrategyTable`."""

    def __init__(self, colours: Colours, undo_stack: QUndoStack, can: Mapping[str, Action]) -> None:
        super().__init__()
        self.can = can
        calibrating = "The table is being calibrated; press Esc to cancel."
        for name in ("import_table", "export_table"):
            can[name].explain(lambda: "" if self._live is None else calibrating)
        self._colours = colours
        self.table: StrategyTable | None = None
        self.reference: StrategyTable | None = None
        self._reference_name = ""
        self._operations: OperationCounts | None = None
        self._live: np.ndarray | None = None
        self._threshold: float | None = None
        self._trials = 0
        self.undo_stack = undo_stack
        self._build()
        recolour(self, colours)

    def _build(self) -> None:
        self.headline = build.label(look="muted", selectable=True)
        self.headline.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        icons = {"undo": "undo", "redo": "redo", "import": "import_table", "export": "export_table"}
        self._buttons = {drawn: IconButton(self.can[name]) for drawn, name in icons.items()}
        self.difference_box = build.named(QCheckBox("Difference"), tip="Mark cells that differ from the compared table")
        self.difference_box.toggled.connect(self._show)
        tip = "The cells as a text table, for screen readers and for copying"
        self.text_box = build.named(QCheckBox("As text"), tip=tip)
        self.text_box.toggled.connect(self._switch_view)
        self.grid = grid.StrategyGrid(self._colours)
        self.grid.cell_activated.connect(self._cycle)
        self.grid.action_wanted.connect(self.set_selected)
        self.grid.cursor_moved.connect(self._show_cell)
        self.text_view = build.named(QTableView(), "Strategy table as text")
        self.text_view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        CopyKey(self.text_view, self.grid.as_text)
        self._model = grid.TableModel(self.grid)
        self.text_view.setModel(self._model)
        self._views = QStackedWidget()
        self._views.addWidget(self.grid)
        self._views.addWidget(self.text_view)
        self.legend = build.words(name="Legend", rich=True)
        self.cell = QLabel()
        self.cell.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.figures = grid.Figures()
        top = build.row((self.headline, 1), self.difference_box, self.text_box, *self._buttons.values())
        self.pages = Invited(self._views, text=self.grid.empty_text())
        below = tuple(map(build.keeping_room, (self.legend, self.cell, self.figures)))
        build.fill(VBoxLayout(self), (top, (self.pages, 1), *below), (GAP,) * 4)
        self.setFocusProxy(self.grid)

    def set_table(self, table: StrategyTable | None) -> None:
        if table != self.table:
            self.table = table
            self._show()

    def set_reference(self, table: StrategyTable | None, name: str = "Calibrated table") -> None:
        """Set the table to compare with, if any, and its name. Tables of another shape are compared by counts only."""
        self.reference, self._reference_name = table, name
        self._show()

    def set_reason(self, reason: str, yet: str = "") -> None:
        """Set why the model has no strategy tables, as a sentence, or ``""``; ``yet``: how to get one."""
        self.grid.set_reason(reason or (f"No strategy table yet: {yet}, or import a table." if yet else ""))
        self.pages.invite(self.grid.empty_text())

    def set_operations(self, operations: OperationCounts | None, title: str = "Operations") -> None:
        """Operations of a backbone evaluation, to predict the ops ratio; ``title``: their heading."""
        self._operations = operations
        self.figures.name_operations(title)
        self._show_figures()

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        for name, button in self._buttons.items():
            button.setIcon(icon(name))
        self._show()

    def begin_calibration(self, layers: int, steps: int, threshold: float | None = None, for_end: bool = False) -> None:
        """Show an untried table, filled in by :meth:`add_trials` and not editable until the calibration ends. At
        ``threshold`` δ, the error limit of layer l of L is l/L of δ. A calibration ``for_end`` has no passes."""
        self._threshold = threshold
        self._live = np.full((layers, steps), grid.UNTRIED, np.int8)
        self._live[:, 0] = SkipAction.NONE
        self._trials = 0
        self._say_phase(END if for_end else CHECK, "begins")
        self._show()

    def add_similarities(self, similarities: np.ndarray) -> None:
        """Progress of the check phase: (layers, steps), NaN where not yet measured."""
        if self._live is None:
            return
        measured = int(np.count_nonzero(~np.isnan(similarities)))
        self._say_phase(CHECK, f"{measured} of {similarities.size} cells measured")

    def add_trials(self, trials: Sequence[Trial]) -> None:
        if self._live is None or not trials:
            return
        for trial in trials:
            if trial.accepted:
                self._live[trial.layer, trial.step] = trial.action
            elif self._live[trial.layer, trial.step] == grid.UNTRIED:
                self._live[trial.layer, trial.step] = SkipAction.NONE
        self._trials += len(trials)
        last = trials[-1]
        self._say_phase(last.phase, f"{self._trials} trials")
        self.grid.light((last.layer, last.step))
        self.grid.refresh()
        place, verdict = f"Layer {last.layer + 1}, step {last.step + 1}", "accepted" if last.accepted else "rejected"
        text = f"{place}: {grid.NAMES[last.action]} {verdict}, error {general(last.error, 3)}"
        if self._threshold is not None:
            layers = len(self._live)
            limit = (last.layer + 1) / layers * self._threshold
            side = "below" if last.accepted else "not below"
            part = f"{last.layer + 1}/{layers} of δ = {general(self._threshold)}"
            text += f", {side} the layer's limit {general(limit, 3)} ({part})"
        self.cell.setText(text)
        self._show_figures()

    def end_calibration(self) -> None:
        """Show the table again that :meth:`set_table` set last."""
        self._live = None
        self.grid.light(None)
        self._show()

    @property
    def editable(self) -> StrategyTable | None:
        return self.table if self._live is None else None

    def set_selected(self, action: SkipAction) -> None:
        """Set the cells of the selected range to ``action``, as one edit that can be undone."""
        before = self.editable
        if before is None:
            return
        if action is SkipAction.BS and not self._has_branches(before):
            self.cell.setText(ONE_BRANCH_REASON)
            return
        selected = self.grid.selected()
        cells = [(layer, step) for layer, step in selected if step and before.actions[layer][step] is not action]
        if not cells:
            if all(step == 0 for _, step in selected):
                self.cell.setText(grid.FIRST_STEP_REASON)
            return
        table = before
        for layer, step in cells:
            table = table.changed(layer, step, action)
        where = f"layer {cells[0][0] + 1}, step {cells[0][1] + 1}" if len(cells) == 1 else f"{len(cells)} cells"
        self.undo_stack.push(Edit(f"set {where} to {grid.NAMES[action]}", before, table, self._take_edit))

    def _cycle(self, layer: int, step: int) -> None:
        table = self.editable
        if table is None:
            return
        wanted = _NEXT[table.actions[layer][step]]
        if wanted is SkipAction.BS and not self._has_branches(table):
            wanted = SkipAction.NONE
        self.set_selected(wanted)

    def _has_branches(self, table: StrategyTable) -> bool:
        if self._operations is not None:
            return self._operations.branches > 1
        return table.compatibility.sampling.get("guidance") != 0

    def _take_edit(self, table: StrategyTable) -> None:
        self.table = table
        self._show()
        self.table_edited.emit(table)

    def _show(self) -> None:
        table, live = self.table, self._live
        comparable = live is None and _alike(table, self.reference)
        self.difference_box.setEnabled(comparable)
        self.difference_box.setVisible(live is None)
        difference = comparable and self.difference_box.isChecked()
        # Remove the reference table first: it must never meet a table of another shape.
        self.grid.show_reference(None)
        # Without a table in use, show the reference table.
        seen = table if table is not None else self.reference
        self.grid.show_actions(_values(seen) if live is None else live)
        self.pages.show_content(seen is not None or live is not None)
        for one in (self.legend, self.cell, self.figures):
            one.setVisible(not self.pages.is_empty)
        if difference:
            self.grid.show_reference(_values(self.reference), self._reference_name)
        self.legend.setText(grid.legend(self._colours, live is not None, difference))
        for name in ("import_table", "export_table"):
            self.can[name].refresh()
        if live is None:
            whose = "" if table is not None else f"{self._reference_name}, not in use: "
            self.headline.setText(
                "" if seen is None else f"{whose}{seen.layers} layers × {seen.steps} steps, {localised(seen.origin)}"
            )
            self.headline.setToolTip(self.headline.text())
            set_look(self.headline, "muted")
            self._show_cell(*self.grid.cursor_cell)
        self._show_figures()
        if self.text_box.isChecked():
            self._model.reload()

    def _show_cell(self, layer: int, step: int) -> None:
        if self._live is None:
            self.cell.setText(self.grid.describe(layer, step) if self.grid.layers else "")
            self.cell.setToolTip(self.cell.text())

    def _show_figures(self) -> None:
        if self._live is not None:
            counts = Counter(self._live.ravel().tolist())
            skipped = (counts[SkipAction.TS] + counts[SkipAction.BS]) / self._live.size
            figures = [str(counts[action]) for action in SkipAction]
            self.figures.show_row(0, ["So far", *figures, percent(skipped, 1), "–", "–"])
            self.figures.show_row(1, None)
            return
        self.figures.show_row(0, self._counted("This table", self.table))
        name = self._reference_name
        if self.reference is not None and self.table is not None and self.grid.steps:
            name = f"{name}: {_difference(self.table, self.reference)}"
        self.figures.show_row(1, None if self.reference is None else self._counted(name, self.reference))

    def _counted(self, name: str, table: StrategyTable | None) -> list[str]:
        if table is None:
            return [name, *["–"] * 6]
        figures = [name, *(str(table.count(action)) for action in SkipAction), percent(table.skipped_share, 1)]
        operations = self._operations
        if operations is None or operations.layers != table.layers:
            return [*figures, "–", "–"]
        ratio = table.ops_ratio(operations)
        return [*figures, percent(ratio, 1), times(1 / ratio) if ratio else "–"]

    def _say_phase(self, phase: str, progress: str) -> None:
        name, meaning = _PASSES.get(phase, (phase, ""))
        self.headline.setText(f"{name}: {progress}; {meaning}")
        self.headline.setToolTip(self.headline.text())
        set_look(self.headline, "title")

    def _switch_view(self, as_text: bool) -> None:
        if as_text:
            self._model.reload()
        self._views.setCurrentWidget(self.text_view if as_text else self.grid)
        self.setFocusProxy(self._views.currentWidget())


def _alike(one: StrategyTable | None, other: StrategyTable | None) -> bool:
    return one is not None and other is not None and (one.layers, one.steps) == (other.layers, other.steps)


def _difference(table: StrategyTable, reference: StrategyTable) -> str:
    if not _alike(table, reference):
        return f"{reference.layers} layers × {reference.steps} steps"
    differ = np.count_nonzero(_values(table) != _values(reference))
    if differ == 0:
        return "identical"
    return "1 cell differs" if differ == 1 else f"{differ} cells differ"


def _values(table: StrategyTable | None) -> np.ndarray:
    return np.zeros((0, 0), np.int8) if table is None else np.array(table.actions, np.int8)
