"""The guide's presenter: what of the main job is done, and what to press next."""

from __future__ import annotations

from app.features.export.presenter import ExportPresenter
from app.features.guide.panel import Guide, main_job
from app.features.listen.presenter import ListenPresenter
from app.features.presenter import Presenter, Services
from app.shell.docks import add_bar


class GuidePresenter(Presenter):
    """Owns no dock: the guide is the bar above them."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._calibrate = services.actions.calibrate
        """The step that only some models have."""
        self._listening = services.features.find(ListenPresenter)
        self._export = services.features.find(ExportPresenter)
        self.guide = Guide(main_job(services.actions))
        add_bar(services.window, "steps", "Steps", self.guide)

    def refresh(self) -> None:
        state, running = self._state, self._state.jobs.running
        accelerated = state.comparison.take_b is not None and bool(state.comparison.take_b.setting.techniques)
        done = (
            state.comparison.take_a is not None and not state.comparison.take_a.setting.techniques,
            any(one.artefact is not None and not one.problem() for one in state.artefacts.sources),
            accelerated,
            self._listening.compared and accelerated,
            self._export.exported,
        )
        instead = ""
        if state.jobs.held:
            instead = "A listening test is on; background work is paused. The page shows the keys at the bottom."
        elif running:
            instead = f"{running[0].kind.value}… You can use the panels meanwhile; <b>Esc</b> cancels."
        elif not state.selection.ready:
            instead = "The model is not loaded. Choose one under <b>Model</b> on the left."
        elif done[0] and not accelerated and not state.selection.setting.techniques:
            instead = "<b>Next:</b> engage a technique on the left, then speak the same sentence with it."
        calibrated = any(one.prepared_by == "calibration" for one in state.selection.techniques)
        self.guide.show_progress(done, instead, () if calibrated else (self._calibrate,))
