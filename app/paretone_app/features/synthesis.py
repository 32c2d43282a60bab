"""The synthesis presenter: baseline and accelerated synthesis, and cancelling."""

from collections.abc import Callable, Sequence

from paretone.setting.setting import Setting
from paretone_app.features.presenter import Part, Presenter, Services
from paretone_app.shell.banner import Message


class SynthesisPresenter(Presenter):
    """Owns no panel: runs are actions, and the status line shows their progress."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        actions = services.actions
        self._status = services.status
        self._question: Message | None = None
        available, jobs = services.state.availability, services.state.jobs
        actions.bind(actions.baseline, self._baseline, available.why_not_speak)
        actions.bind(actions.accelerated, self._accelerated, available.why_not_accelerate)
        actions.bind(actions.cancel, self.cancel, lambda: "" if jobs.running else "Nothing to cancel.")

    def _baseline(self) -> None:
        self._ask_if_long(self._state.selection.baseline_setting, self._state.synthesis.synthesise_baseline)

    def _accelerated(self) -> None:
        self._ask_if_long(self._state.selection.setting, self._state.synthesis.synthesise_accelerated)

    def _ask_if_long(self, setting: Setting, synthesise: Callable[[], None]) -> None:
        """Synthesise at once; ask first if it will take minutes."""
        self._notices.banner.withdraw(self._question)  # It may be about another text.
        if not (long := self._state.cost.why_ask(setting)):
            synthesise()
            return
        question = f"{long} It can be cancelled at any time (Esc)."
        choices = ("Speak the whole text",)
        self._question = self._notices.ask(question, choices, lambda _: self._actions.attempt(synthesise), "info")

    def cancel(self) -> None:
        """Cancel the job under way; the next begins."""
        for job in self._state.jobs.running:
            self._status.say("Cancelling…")
            self._state.jobs.cancel(job)

    def step_done(self, action: str) -> bool:
        made = self._state.synthesis
        return made.accelerated_is_current if action == "accelerated" else made.baseline_is_current

    def step_changed(self, action: str) -> bool:
        compared = self._state.comparison
        take = compared.take_b if action == "accelerated" else compared.take_a
        return take is not None and bool(take.setting.techniques) == (action == "accelerated")

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        return ("baseline",)
