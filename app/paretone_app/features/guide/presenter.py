"""The guide's presenter: what of the main job is done, and what to press next."""

from __future__ import annotations

from paretone_app.features.guide.panel import Guide, Step
from paretone_app.features.presenter import Presenter, Services


class GuidePresenter(Presenter):
    """Owns the bar above the panels of the workspace that the main job is done in."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._job, self._features = services.job, services.features
        self.guide = Guide([Step(services.actions[one.action], one.title, one.hint) for one in self._job])
        services.workspaces.put("steps", self.guide)

    def refresh(self) -> None:
        state, running = self._state, self._state.jobs.running
        done = {step.action: self._features[name].step_done(step.action) for step, name in self._job.items()}
        changed = [
            done[step.action] is False and self._features[name].step_changed(step.action)
            for step, name in self._job.items()
        ]
        instead = ""
        if state.jobs.held:
            instead = "A listening test is on; background work is paused. The page shows the keys at the bottom."
        elif running:
            instead = f"{running[0].kind.value}… You can use the panels meanwhile; <b>Esc</b> cancels."
        elif not state.machine.device:
            instead = f"Opening Paretone: {state.selection.entry.title} is loaded next."
        elif not state.selection.ready or state.selection.candidate:
            instead = state.selection.why_not_ready()
        elif done.get("baseline") and not done.get("accelerated") and not state.selection.setting.techniques:
            instead = "<b>Next:</b> switch a technique on at the left, then speak the same sentence with it."
        self.guide.show_progress(list(done.values()), changed, instead)
