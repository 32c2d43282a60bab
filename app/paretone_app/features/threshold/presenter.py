"""The threshold presenter: δ and what each value of it would skip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretone.techniques.ditreducio import TECHNIQUE, THRESHOLD, UNITS
from paretone_app.features.presenter import Part, Presenter, Services, built
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.features.strategy.presenter import StrategyPresenter
from paretone_app.features.strategy.state import NAME
from paretone_app.state.jobs import Kind

if TYPE_CHECKING:
    from paretone_app.features.threshold.panel import ThresholdPanel


class ThresholdPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        state = services.state
        calibrating = services.features.find(StrategyPresenter)
        self._strategy = strategy = calibrating.state
        self._calibrated = lambda: calibrating.step_done("calibrate")
        self._setup = services.features.find(SetupPresenter).setup
        self.threshold: ThresholdPanel | None = None
        self.later = {"threshold": self._build_threshold}
        for signal in (strategy.changed, state.cost.changed, state.selection.model_changed):
            signal.connect(self._show_record)
        state.jobs.ended.connect(lambda job: self._show_record() if job.kind is Kind.CALIBRATE else None)
        calibrate = services.actions["calibrate"]
        tip = "Measure every layer and step again at this δ, for an exact table"
        self._calibrate = services.actions.add("Calibrate", self._calibrate_here, tip, lambda: calibrate.reason)

    def refresh(self) -> None:
        metric = str(self._state.selection.knobs(NAME)["metric"])
        editor = self._setup.techniques.groups[NAME].controls.editor("threshold")
        editor.setStatusTip(f"Unit of the threshold: {UNITS[metric]}")
        if self.threshold is not None:
            self.threshold.set_metric(metric)
            self.threshold.set_threshold(self._strategy.threshold)

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        strategy, panel, used = self._strategy, built(self.threshold), self._state.selection.is_used
        before = strategy.threshold
        return (
            Part(
                f"add <b>{TECHNIQUE.title}</b> in Setup.",
                lambda: self._setup.techniques.where_to_use(NAME),
                lambda: used(NAME),
                lambda: self._state.selection.switch(NAME, True),
                place="setup",
            ),
            Part(
                "press <b>Calibrate</b> (Ctrl+K): every skip is tried once.",
                lambda: panel.pages.empty.buttons[0] if panel.pages.is_empty else panel.calibrate_button,
                lambda: bool(self._calibrated()),
                self._actions["calibrate"].trigger,
                strategy.why_not_prepare,
            ),
            Part(
                "drag the red line to the right, or press the right arrow key in the plot.",
                lambda: panel.histogram,
                lambda: strategy.threshold != before,
                lambda: strategy.set_threshold(min(2 * before, THRESHOLD.maximum)),
            ),
        )

    def _build_threshold(self) -> ThresholdPanel:
        from paretone_app.features.threshold.panel import ThresholdPanel

        self.threshold = ThresholdPanel(self._theme.colours, self._calibrate, self._strategy.derive)
        self.threshold.threshold_changed.connect(self._strategy.set_threshold)
        self._show_record()
        return self.threshold

    def _show_record(self) -> None:
        if self.threshold is not None:
            state = self._state
            # The record of another model is kept, but hidden for a model without tables.
            reason = self._strategy.why_no_table()
            self.threshold.set_reason(reason, self._strategy.how_to_calibrate())
            self.threshold.set_operations(state.cost.operations, self._strategy.operations_title)
            self.threshold.set_record(None if reason else self._strategy.record)

    def _calibrate_here(self) -> None:
        self._strategy.set_threshold(built(self.threshold).threshold)
        self._actions["calibrate"].trigger()
