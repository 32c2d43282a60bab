"""The meters presenter: speed of running syntheses, and of A against B."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paretone.session.events import Telemetry
from paretone.setting.take import Take
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.numbers import localised
from paretone_app.state.jobs import Job, Outcome

if TYPE_CHECKING:
    from paretone_app.features.meters.panel import MetersPanel


class MetersPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.meters: MetersPanel | None = None
        self.later = {"meters": self._build_meters}
        services.state.synthesis.timing_ended.connect(lambda remarks: self._notices.warn(remarks) if remarks else None)
        self._features = services.features
        made = self._state.synthesis
        self._repeat = self._actions["repeat"]
        self._repeat_tip = self._repeat.tip
        self._actions.bind(self._repeat, made.time_again, made.why_not_time_again)

    def show_telemetry(self, event: Telemetry) -> None:
        """Show live figures of a running job; ignore those of an ended one."""
        if self.meters is not None and self._state.jobs.find(event.job) is not None:
            self.meters.show_telemetry(event, self._features.find(PlayerPresenter).deck.waits)

    def refresh(self) -> None:
        left_out = localised(self._state.synthesis.left_out())
        self._repeat.set_tip("\n".join(filter(None, (self._repeat_tip, left_out))))
        if self.meters is not None:
            self.meters.figures["device"].show_value(self._state.loading.device_title or "–")

    def _build_meters(self) -> MetersPanel:
        from paretone_app.features.meters.panel import MetersPanel

        self.meters = MetersPanel(self._theme.colours)
        self.meters.offer(self._repeat)
        self._state.synthesis.take_added.connect(self._show_take)
        self._state.synthesis.remeasured.connect(self.meters.show_factor)
        self._state.comparison.changed.connect(self._show_comparison)
        self._show_comparison()
        return self.meters

    def _show_take(self, take: Take) -> None:
        if not take.unfinished:
            built(self.meters).show_take(take, self._features.find(PlayerPresenter).deck.waits)

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if outcome is not Outcome.FINISHED and self.meters is not None:
            self.meters.forget(job.number, outcome.value)

    def _show_comparison(self) -> None:
        compared = self._state.comparison
        built(self.meters).show_comparison(compared.take_a, compared.take_b, compared.headline(), compared.basis())
