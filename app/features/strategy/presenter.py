"""The strategy presenter: which cells are skipped: the table as calibrated, edited, imported and exported."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.features.presenter import Presenter
from app.features.services import Services
from app.shell import file_dialogs
from app.shell.notices import Level
from app.state.jobs import Job, Kind
from app.state.selection import DITREDUCIO
from engine.errors import PlainError
from engine.session.messages import Event, SimilarityMeasured, TrialDone
from engine.techniques.ditreducio.table import StrategyTable

if TYPE_CHECKING:
    from app.features.strategy.panel import StrategyPanel


class StrategyPresenter(Presenter):
    """Owns Strategy."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._window = services.window
        self._state = services.state
        self._actions = services.actions
        self._docks = services.docks
        self._notices = services.notices
        self._theme = services.theme
        self._beside: StrategyTable | None = None
        self.strategy: StrategyPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"strategy": self._build_strategy}
        actions, state = services.actions, services.state
        actions.bind(actions.import_table, self._ask_for_table)
        actions.bind(actions.export_table, self._ask_where_to_put_table)
        actions.bind(actions.skip_nothing, self._skip_nothing)
        for signal in (state.table_changed, state.model_changed):
            signal.connect(self._show_table)
        state.jobs.began.connect(self._job_began)
        state.jobs.ended.connect(self._job_ended)

    def engine_starts(self) -> None:
        """Say which calibrations could not be read."""
        for problem in self._state.calibrations.problems:
            self._notices.note(problem, Level.WARNING)

    def refresh(self) -> None:
        state, actions = self._state, self._actions
        actions.import_table.setEnabled(state.ready)
        actions.export_table.setEnabled(state.table is not None)
        actions.skip_nothing.setEnabled(state.ready and state.compatibility() is not None)

    # --- The table --------------------------------------------------------------------------------------------------
    def _build_strategy(self) -> QWidget:
        from app.features.strategy.panel import StrategyPanel

        self.strategy = StrategyPanel(self._theme.colours, self._state.undo_stack)
        self.strategy.table_edited.connect(self._state.adopt_table)
        self.strategy.import_wanted.connect(self._actions.import_table.trigger)
        self.strategy.export_wanted.connect(self._actions.export_table.trigger)
        self._show_table()
        return self.strategy

    @Slot()
    def _show_table(self) -> None:
        """Show the strategy table and what follows from it."""
        if self.strategy is None:
            return
        state = self._state
        # The table of another model is kept, but it says nothing about one that has none.
        reason = state.why_no_table()
        has_one = not reason
        self.strategy.set_reason(reason)
        self.strategy.set_operations(state.operations)
        self.strategy.set_times(state.step_times)
        self.strategy.set_table(state.table if has_one else None)
        if self._beside is not None:
            self.strategy.set_other(self._beside, "Chosen point")
        else:
            self.strategy.set_other(state.other_table if has_one else None)

    def compare_with(self, table: StrategyTable | None) -> None:
        """Show the table of a point that was chosen elsewhere beside the one in use; ``None`` for the usual one."""
        if table is not self._beside:
            self._beside = table
            self._show_table()

    # --- Calibration ------------------------------------------------------------------------------------------------
    def show_reports(self, events: Sequence[Event]) -> None:
        """Show the trials of a running calibration; those of one that has ended are passed over."""
        if self.strategy is None:
            return
        running = [event for event in events if self._state.jobs.find(event.job) is not None]
        for event in running:
            if isinstance(event, SimilarityMeasured):
                self.strategy.add_similarities(event.similarities)
        trials = tuple(event.trial for event in running if isinstance(event, TrialDone))
        if trials:
            self.strategy.add_trials(trials)

    @Slot(object)
    def _job_began(self, job: Job) -> None:
        state = self._state
        if job.kind is Kind.CALIBRATE and state.info is not None and self.strategy is not None:
            self._docks.bring_forward("strategy")
            self.strategy.begin_calibration(state.info.layers, int(state.options_in_force["steps"]))

    @Slot(object)
    def _job_ended(self, job: Job) -> None:
        if job.kind is Kind.CALIBRATE:
            if self.strategy is not None:
                self.strategy.end_calibration()
            self._show_table()

    # --- Tables from and for elsewhere ------------------------------------------------------------------------------
    def _skip_nothing(self) -> None:
        state = self._state
        compatibility = state.compatibility()
        if compatibility is not None and state.info is not None:
            branch_skip = str(state.knobs(DITREDUCIO)["branch_skip"])
            state.replace_table(StrategyTable.computing(compatibility, state.info.layers, branch_skip), "skip nothing")

    def _ask_for_table(self) -> None:
        file_dialogs.ask_for_file(
            self._window,
            "Official strategy table",
            file_dialogs.JSON,
            lambda path: self._actions.attempt(lambda: self.import_table(path)),
        )

    def import_table(self, path: Path) -> None:
        """Use the official strategy table in ``path``. Raises :class:`PlainError` when it cannot be used."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PlainError(f"{path} cannot be read ({error}).") from error
        self._state.import_table(text, path.name)

    def _ask_where_to_put_table(self) -> None:
        file_dialogs.ask_where_to_write(
            self._window,
            "Official strategy table",
            file_dialogs.JSON,
            f"{self._state.table.steps}_{self._state.threshold:g}.json",
            lambda path: self._actions.attempt(lambda: self.export_table(path)),
        )

    def export_table(self, path: Path) -> None:
        """Write the strategy table in the official form. Raises :class:`PlainError` when it cannot be written."""
        if self._state.table is None:
            raise PlainError("No strategy table to export yet: calibrate first.")
        try:
            path.write_text(json.dumps(self._state.table.to_official()), encoding="utf-8")
        except OSError as error:
            raise PlainError(f"{path} cannot be written ({error.strerror}); choose another folder.") from error
        self._notices.note(f"Wrote {path}")
