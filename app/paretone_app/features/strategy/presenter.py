"""The strategy presenter: the strategy table, calibrated, edited, imported and exported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from paretone import files
from paretone.errors import PlainError
from paretone.reading import legible, read_text
from paretone.sampling.actions import SkipAction
from paretone.session.events import Event, Prepared
from paretone.techniques.ditreducio import END, NAME
from paretone.techniques.ditreducio.record import Calibrated, Similarities, Trial
from paretone.techniques.ditreducio.table import StrategyTable
from paretone_app.features.presenter import Part, Services, StorePresenter, built
from paretone_app.features.strategy.state import SHIPPED, StrategyState, running_reports
from paretone_app.numbers import fixed, general, percent
from paretone_app.shell import file_dialogs
from paretone_app.state.jobs import Job, Kind, Outcome

if TYPE_CHECKING:
    from paretone_app.features.strategy.panel import StrategyPanel


class StrategyPresenter(StorePresenter):
    state: StrategyState

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.state = StrategyState(services.state, services.folder / "calibrations", self, SHIPPED)
        self.strategy: StrategyPanel | None = None
        self.later = {"strategy": self._build_strategy}
        actions, state, table = services.actions, services.state, self.state
        actions.bind(actions["calibrate"], table.calibrate, table.why_not_prepare)
        ask = partial(self._ask_for_file, "Official strategy table", file_dialogs.JSON, self.import_table)
        actions.bind(actions["import_table"], ask, state.selection.why_not_ready)
        actions.bind(actions["export_table"], self._ask_where_to_put_table, self._why_none)
        actions.bind(actions["skip_nothing"], table.skip_nothing, table.why_not_replace)
        for signal in (self.state.changed, state.cost.changed, state.selection.model_changed):
            signal.connect(self._show_table)

    def _why_none(self) -> str:
        return "" if self.state.table is not None else f"There is no table yet: {self.state.how_to_calibrate()}."

    def step_done(self, action: str) -> bool | None:
        if self.state.why_no_table():
            return None
        selection = self._state.selection
        if selection.setting.techniques and not selection.is_used(NAME):
            return None  # The techniques in use need no table.
        return self.state.artefact is not None and not self.state.problem()

    def step_changed(self, action: str) -> bool:
        return self.state.artefact is not None

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        grid = built(self.strategy).grid
        before = grid.cursor_cell

        def go_to_a_skip() -> None:
            table = self._table
            skips = (
                (layer, step)
                for step in range(table.steps)
                for layer in range(table.layers)
                if table.actions[layer][step] is not SkipAction.NONE and (layer, step) != before
            )
            grid.move_cursor(*next(skips, (table.layers - 1, table.steps - 1)))

        return (
            Part(
                "point at cells, or move with the arrow keys: the line below the table says what happens there.",
                lambda: grid,
                lambda: grid.cursor_cell != before,
                go_to_a_skip,
                self._why_none,
                "Show me one",
            ),
        )

    def _build_strategy(self) -> StrategyPanel:
        from paretone_app.features.strategy.panel import StrategyPanel

        names = ("undo", "redo", "import_table", "export_table", "calibrate")
        can = {name: self._actions[name] for name in names}
        self.strategy = StrategyPanel(self._theme.colours, self._state.undo_stack, can)
        self.strategy.table_edited.connect(self.state.use)
        self.strategy.pages.offer(can["calibrate"])
        self.strategy.pages.offer(can["import_table"])
        self._show_table()
        return self.strategy

    def _show_table(self) -> None:
        if self.strategy is None:
            return
        state, strategy = self._state, self.state
        # The table of another model is kept, but hidden for a model without tables.
        reason = strategy.why_no_table()
        has_one = not reason
        self.strategy.set_reason(reason, strategy.how_to_calibrate())
        self.strategy.set_operations(state.cost.operations, strategy.operations_title)
        self.strategy.grid.set_times(state.selection.step_times)
        self.strategy.set_table(strategy.table if has_one else None)
        if strategy.compared is not None:
            self.strategy.set_reference(strategy.compared, "Chosen point")
        elif has_one and strategy.is_edited:
            self.strategy.set_reference(strategy.reference, "Table at δ")
        else:
            self.strategy.set_reference(strategy.reference if has_one else None)

    def follow(self, event: Event) -> None:
        super().follow(event)
        if isinstance(event, Prepared) and isinstance(event.result, Calibrated):
            record = event.result.record
            budget = f"for {percent(record.knobs['operations'] / 100)} of the operations" if record.is_for_end else ""
            self._notices.note(
                f"Calibrated {record.table.layers} × {record.table.steps} cells with {len(record.trials)} trials in "
                f"{fixed(event.result.seconds, 1)} s; {percent(record.table.skipped_share)} skip "
                f"{budget or f'at threshold {general(record.threshold)}'}"
            )

    def show_reports(self, events: Sequence[Event]) -> None:
        """Show the trials of a running calibration; ignore those of an ended one."""
        if self.strategy is None:
            return
        reports = running_reports(events, self._state.jobs)
        if similarities := [one for one in reports if isinstance(one, Similarities)]:
            self.strategy.add_similarities(similarities[-1].values)
        if trials := tuple(one for one in reports if isinstance(one, Trial)):
            self.strategy.add_trials(trials)

    def job_began(self, job: Job) -> None:
        state = self._state
        if job.kind is Kind.CALIBRATE and state.selection.info is not None and self.strategy is not None:
            self._workspaces.bring_forward("strategy")
            wanted, knobs = self.state.compatibility(), state.selection.knobs(NAME)
            if wanted is None:
                return
            for_end = knobs["objective"] == END
            threshold = None if for_end else float(knobs["threshold"])
            self.strategy.begin_calibration(state.selection.info.of_flow.layers, wanted.steps, threshold, for_end)

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.CALIBRATE:
            if self.strategy is not None:
                self.strategy.end_calibration()
            self._show_table()

    def import_table(self, path: Path) -> None:
        """Use the official strategy table in ``path``. Raises :class:`PlainError` when it cannot be used."""
        with legible(PlainError, "strategy table", path):
            text = read_text(path)
        self.state.import_table(text, path.name)

    @property
    def _table(self) -> StrategyTable:
        """The table to export. Raises :class:`PlainError` if there is none."""
        if self.state.table is None:
            raise PlainError(f"No strategy table to export yet: {self.state.how_to_calibrate()}.")
        return self.state.table

    def _ask_where_to_put_table(self) -> None:
        name = f"{self._table.steps}_{self.state.threshold:g}.json"
        self._ask_where_to_write("Official strategy table", file_dialogs.JSON, name, self.export_table)

    def export_table(self, path: Path) -> None:
        """Write the strategy table in the official form. Raises :class:`PlainError` when it cannot be written."""
        files.write(path, json.dumps(self._table.to_official()).encode())
        self._notices.note(f"Wrote {path}")
