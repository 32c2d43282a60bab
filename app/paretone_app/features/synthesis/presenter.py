"""The synthesis presenter: the two syntheses of the main job, cancelling them, and the device they run on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Slot

from paretone.setting.setting import Setting
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.tour.model import Part
from paretone_app.widgets import build

_ALL_OF_IT = "Speak the whole text"


class SynthesisPresenter(Presenter):
    """Owns no panel: runs are actions, and the status line shows how far they are."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        actions = services.actions
        self._status = services.status
        actions.bind(actions.baseline, self._baseline)
        actions.bind(actions.accelerated, self._accelerated)
        actions.bind(actions.cancel, self.cancel)

    def _baseline(self) -> None:
        self._ask_if_long(self._state.selection.baseline_setting, self._state.synthesis.synthesise_baseline)

    def _accelerated(self) -> None:
        self._ask_if_long(self._state.selection.setting, self._state.synthesis.synthesise_accelerated)

    def _ask_if_long(self, setting: Setting, synthesise: Callable[[], None]) -> None:
        """Synthesise at once, or after a question if that will take minutes."""
        long = self._state.cost.why_ask(setting)
        if not long:
            synthesise()
            return
        question = f"{long} It can be cancelled at any time (Esc)."
        self._notices.ask(question, (_ALL_OF_IT,), lambda _: self._actions.attempt(synthesise), "info")

    @Slot()
    def cancel(self) -> None:
        """Cancel everything that runs or waits."""
        if self._state.jobs.busy:
            self._status.say("Cancelling…")
            self._state.jobs.cancel_all()

    def step_done(self, action: str) -> bool:
        """A is the baseline of what is selected, or B was made with the techniques that are."""
        made = self._state.synthesis
        return made.accelerated_is_current if action == "accelerated" else made.baseline_is_current

    def step_changed(self, action: str) -> bool:
        """A is another baseline, or B was made with other techniques."""
        compared = self._state.comparison
        take = compared.take_b if action == "accelerated" else compared.take_a
        return take is not None and bool(take.setting.techniques) == (action == "accelerated")

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        return ("baseline",)

    def refresh(self) -> None:
        state, busy = self._state, self._state.jobs.busy
        for action, reason in (
            (self._actions.baseline, state.availability.why_not_synthesise()),
            (self._actions.accelerated, state.availability.why_not_accelerate()),
        ):
            action.setEnabled(not reason and not busy)
            action.setToolTip(reason or state.jobs.why_wait or action.statusTip())
        build.allow(self._actions.cancel, "" if busy else "Nothing to cancel.", self._actions.cancel.statusTip())
