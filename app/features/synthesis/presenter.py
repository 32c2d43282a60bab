"""The synthesis presenter: the two syntheses of the main job, cancelling them, and the device they run on."""

from __future__ import annotations

from PySide6.QtCore import Slot

from app.features.presenter import Presenter, Services


class SynthesisPresenter(Presenter):
    """Owns no panel: runs are actions, and the status line shows how far they are."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        state = services.state
        actions = services.actions
        self._status = services.status
        actions.bind(actions.baseline, state.synthesis.synthesise_baseline)
        actions.bind(actions.accelerated, state.synthesis.synthesise_accelerated)
        actions.bind(actions.cancel, self.cancel)
        services.status.cancel_wanted.connect(self.cancel)

    @Slot()
    def cancel(self) -> None:
        """Cancel everything that runs or waits."""
        if self._state.jobs.busy:
            self._status.say("Cancelling…")
            self._state.jobs.cancel_all()

    def step_done(self, action: str) -> bool:
        """A is a baseline, or B was made with techniques."""
        compared = self._state.comparison
        if action == "accelerated":
            return compared.accelerated
        return compared.take_a is not None and not compared.take_a.setting.techniques

    def refresh(self) -> None:
        state, busy = self._state, self._state.jobs.busy
        for action, reason in (
            (self._actions.baseline, state.availability.why_not_synthesise()),
            (self._actions.accelerated, state.availability.why_not_accelerate()),
        ):
            action.setEnabled(not reason and not busy)
            action.setToolTip(reason or state.jobs.why_wait or action.statusTip())
        self._actions.cancel.setEnabled(busy)
        self._status.show_device(state.loading.device_title, state.machine.title)
