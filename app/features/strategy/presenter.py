"""The strategy presenter: which cells are skipped, and why: the table, its threshold and the attention behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QMainWindow, QWidget

from app.shell import file_dialogs
from app.shell.actions import Actions
from app.shell.docks import Docks
from app.shell.notices import Notices
from app.shell.theme import Theme
from app.state.app_state import AppState
from app.state.jobs import Job, Kind, Outcome
from app.state.selection import DITREDUCIO
from engine.errors import PlainError
from engine.session.messages import SimilarityMeasured, TrialDone
from engine.techniques.ditreducio.table import StrategyTable

if TYPE_CHECKING:
    from app.features.attention.panel import AttentionPanel
    from app.features.strategy.panel import StrategyPanel
    from app.features.threshold.panel import ThresholdPanel


class StrategyPresenter(QObject):
    """Owns Strategy, Threshold and Attention."""

    def __init__(
        self,
        window: QMainWindow,
        state: AppState,
        actions: Actions,
        docks: Docks,
        notices: Notices,
        theme: Theme,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._state = state
        self._actions = actions
        self._docks = docks
        self._notices = notices
        self._theme = theme
        self._beside: StrategyTable | None = None
        self.strategy: StrategyPanel | None = None
        self.threshold: ThresholdPanel | None = None
        self.attention: AttentionPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {
            "strategy": self._build_strategy,
            "threshold": self._build_threshold,
            "attention": self._build_attention,
        }
        actions.bind(actions.import_table, self._ask_for_table)
        actions.bind(actions.export_table, self._ask_where_to_put_table)
        actions.bind(actions.skip_nothing, self._skip_nothing)
        for signal in (state.table_changed, state.model_changed):
            signal.connect(self._show_table)
        state.model_changed.connect(self._forget_capture)
        state.jobs.began.connect(self._job_began)
        state.jobs.ended.connect(self._job_ended)

    def refresh(self) -> None:
        """As :class:`app.features.presenter.Presenter` says."""
        state, actions = self._state, self._actions
        actions.import_table.setEnabled(state.ready)
        actions.export_table.setEnabled(state.table is not None)
        actions.skip_nothing.setEnabled(state.ready and state.compatibility() is not None)
        if self.threshold is not None:
            self.threshold.set_metric(str(state.knobs(DITREDUCIO)["metric"]))
            self.threshold.set_threshold(state.threshold)
            self.threshold.set_busy(bool(state.why_not_calibrate()) or state.jobs.busy)

    # --- Panels -----------------------------------------------------------------------------------------------------
    def _build_strategy(self) -> QWidget:
        from app.features.strategy.panel import StrategyPanel

        self.strategy = StrategyPanel(self._theme.colours, self._state.undo_stack)
        self.strategy.table_edited.connect(self._state.adopt_table)
        self.strategy.import_wanted.connect(self._actions.import_table.trigger)
        self.strategy.export_wanted.connect(self._actions.export_table.trigger)
        self._show_table()
        return self.strategy

    def _build_threshold(self) -> QWidget:
        from app.features.threshold.panel import ThresholdPanel

        self.threshold = ThresholdPanel(self._theme.colours)
        self.threshold.threshold_changed.connect(self._state.set_threshold)
        self.threshold.calibration_wanted.connect(self._calibrate_at)
        self._show_table()
        return self.threshold

    def _build_attention(self) -> QWidget:
        from app.features.attention.panel import AttentionPanel

        self.attention = AttentionPanel(self._theme.colours)
        self.attention.capture_wanted.connect(self._capture_attention)
        self._state.attention_captured.connect(self.attention.show_capture)
        self._show_table()
        return self.attention

    @Slot()
    def _show_table(self) -> None:
        """Show the strategy table and what follows from it in every panel that does."""
        state = self._state
        # The table of another model is kept, but it says nothing about one that has none.
        reason = state.why_no_table()
        has_one = not reason
        if self.strategy is not None:
            self.strategy.set_reason(reason)
            self.strategy.set_operations(state.operations)
            self.strategy.set_times(state.step_times)
            self.strategy.set_table(state.table if has_one else None)
            if self._beside is not None:
                self.strategy.set_other(self._beside, "Chosen point")
            else:
                self.strategy.set_other(state.other_table if has_one else None)
        if self.threshold is not None:
            self.threshold.set_reason(reason)
            self.threshold.set_operations(state.operations)
            self.threshold.set_record(state.record if has_one else None)
        if self.attention is not None:
            self.attention.set_times(state.step_times)
            steps = state.options_in_force.get("steps")
            if state.record is not None and state.record.table.steps == steps:
                self.attention.set_similarities(state.record.similarities, state.record.cut)
            elif state.info is not None and steps is not None:
                self.attention.set_layout(state.info.layers, int(steps))

    def compare_with(self, table: StrategyTable | None) -> None:
        """Show the table of a point that was chosen elsewhere beside the one in use; ``None`` for the usual one."""
        if table is not self._beside:
            self._beside = table
            self._show_table()

    @Slot()
    def _forget_capture(self) -> None:
        """A captured map does not outlive its model."""
        if self.attention is not None and not self._state.ready:
            self.attention.clear_capture()

    # --- Calibration and attention ----------------------------------------------------------------------------------
    @Slot(float)
    def _calibrate_at(self, threshold: float) -> None:
        self._state.set_threshold(threshold)
        self._actions.calibrate.trigger()

    @Slot(object)
    def show_trials(self, events: tuple[TrialDone, ...]) -> None:
        """Show trials of a running calibration; those of one that has ended are passed over."""
        trials = tuple(event.trial for event in events if self._state.jobs.find(event.job) is not None)
        if trials and self.strategy is not None:
            self.strategy.add_trials(trials)

    @Slot(object)
    def show_similarity(self, event: SimilarityMeasured) -> None:
        """Show the similarities of a running calibration; those of one that has ended are passed over."""
        if self._state.jobs.find(event.job) is None:
            return
        if self.strategy is not None:
            self.strategy.add_similarities(event.similarities)
        if self.attention is not None:
            self.attention.set_similarities(event.similarities)

    @Slot(int, int)
    def _capture_attention(self, layer: int, step: int) -> None:
        if self._state.jobs.busy:
            self.attention.show_failure(
                "Wait for the running job, or press Esc to cancel it; then choose the cell again."
            )
            return
        try:
            self._state.capture_attention(layer, step)
        except PlainError as error:
            self.attention.show_failure(str(error))
        else:
            self.attention.begin_capture(layer, step)

    @Slot(object)
    def _job_began(self, job: Job) -> None:
        state = self._state
        if job.kind is Kind.CALIBRATE and state.info is not None and self.strategy is not None:
            self._docks.bring_forward("strategy")
            self.strategy.begin_calibration(state.info.layers, int(state.options_in_force["steps"]))

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.CALIBRATE:
            if self.strategy is not None:
                self.strategy.end_calibration()
            self._show_table()
        if job.kind is Kind.ATTENTION and outcome is not Outcome.FINISHED and self.attention is not None:
            self.attention.show_failure(sentence or "The capture was cancelled; choose the cell again.")

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
            raise PlainError("There is no strategy table to export yet: calibrate first.")
        try:
            path.write_text(json.dumps(self._state.table.to_official()), encoding="utf-8")
        except OSError as error:
            raise PlainError(f"{path} cannot be written ({error.strerror}); choose another folder.") from error
        self._notices.note(f"Wrote {path}")
