"""The transfer presenter: whether the strategy table serves sentences and voices that it was not calibrated on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.session.events import Event, Prepared
from paretone.techniques.ditreducio.record import TransferReport
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.features.strategy.presenter import StrategyPresenter
from paretone_app.state.jobs import Kind

if TYPE_CHECKING:
    from paretone_app.features.transfer.panel import TransferPanel


class TransferPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._strategy = services.features.find(StrategyPresenter).state
        self.transfer: TransferPanel | None = None
        self.later = {"transfer": self._build_transfer}
        services.actions.bind(services.actions["calibrate_on"], lambda: services.workspaces.go_to("transfer"))
        add, strategy = services.actions.add, self._strategy
        measuring = "The transfer is being measured, or waits for it in the queue."
        waits = partial(services.state.jobs.why_one, Kind.TRANSFER, measuring)
        tip, measure = "Speak each sentence in full and with the table, and measure every skip", self._measure_chosen
        self._measure = add("Measure &transfer", measure, tip, lambda: strategy.why_not_transfer() or waits())
        calibrate = lambda those: strategy.calibrate_on(those, built(self.transfer).combination)  # noqa: E731
        tip, why_not = "One table for all ticked sentences", strategy.why_not_prepare
        self._calibrate = add("Cali&brate on these", lambda: calibrate(built(self.transfer).chosen), tip, why_not)
        worst = "Calibrate on the table's own and the &worst sentences"
        self._calibrate_advised = add(worst, lambda: calibrate(built(self.transfer).advised), why_not=why_not)

    def refresh(self) -> None:
        if self.transfer is not None:
            self.transfer.set_voices(self._state.selection.voices)
            self.transfer.own = self._strategy.calibrated_on
            table = self._strategy.table
            self.transfer.set_table(table.fingerprint if table is not None else "")

    def follow(self, event: Event) -> None:
        if self.transfer is not None and isinstance(event, Prepared) and isinstance(event.result, TransferReport):
            self.transfer.show_report(event.result)

    def _build_transfer(self) -> TransferPanel:
        from paretone_app.features.transfer.panel import TransferPanel

        sentences = (*catalogue.harvard_sentences(), *catalogue.sentences())
        self.transfer = TransferPanel(sentences, self._measure, self._calibrate, self._calibrate_advised)
        return self.transfer

    def _measure_chosen(self) -> None:
        # Calibrations and measurements both use the first passage of a text.
        own = self._strategy.calibrated_on
        unseen = tuple(
            one
            for one in built(self.transfer).chosen
            if not any(one.voice == other.voice and one.text.startswith(other.text) for other in own)
        )
        if not unseen:
            raise SettingError("The table was already calibrated on these; tick other sentences or voices.")
        self._strategy.measure_transfer(unseen)
