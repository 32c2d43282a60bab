"""The transfer presenter: whether the strategy table serves sentences and voices that it was not calibrated on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from paretone.models import catalogue
from paretone.models.base import Utterance
from paretone.session.events import Event, Prepared
from paretone.techniques.ditreducio.requests import TransferMeasured
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.strategy.presenter import StrategyPresenter
from paretone_app.state.jobs import Kind

if TYPE_CHECKING:
    from paretone_app.features.transfer.panel import TransferPanel


class TransferPresenter(Presenter):
    """Owns Transfer."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._strategy = services.features.find(StrategyPresenter).state
        self.transfer: TransferPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"transfer": self._build_transfer}
        services.actions.bind(services.actions["calibrate_on"], lambda: services.workspaces.go_to("transfer"))

    def refresh(self) -> None:
        if self.transfer is None:
            return
        state, strategy = self._state, self._strategy
        waiting = state.jobs.why_wait
        if any(job.kind is Kind.TRANSFER for job in state.jobs.running):
            waiting = "The transfer is being measured; press Esc to cancel."
        self.transfer.set_voices(state.selection.voices)
        self.transfer.set_own(strategy.calibrated_on)
        self.transfer.set_table(strategy.table.fingerprint if strategy.table is not None else "")
        self.transfer.set_reasons(strategy.why_not_transfer() or waiting, strategy.why_not_prepare() or waiting)

    def follow(self, event: Event) -> None:
        """Show what was measured."""
        if self.transfer is None or not isinstance(event, Prepared):
            return
        if isinstance(event.result, TransferMeasured):
            self.transfer.show_report(event.result.report)

    def _build_transfer(self) -> QWidget:
        from paretone_app.features.transfer.panel import TransferPanel

        sentences = (*catalogue.harvard_sentences(), *catalogue.sentences())
        self.transfer = TransferPanel(sentences, self._theme.colours)
        self.transfer.calibrate_wanted.connect(self._calibrate)
        self.transfer.transfer_wanted.connect(self._measure)
        self.refresh()
        return self.transfer

    @Slot(object, str)
    def _calibrate(self, utterances: tuple[Utterance, ...], combine: str) -> None:
        self._actions.attempt(lambda: self._strategy.calibrate_on(utterances, combine))

    @Slot(object)
    def _measure(self, utterances: tuple[Utterance, ...]) -> None:
        # Calibrations keep the first passage of a text, which is what is measured as well.
        own = self._strategy.calibrated_on
        unseen = tuple(
            one
            for one in utterances
            if not any(one.voice == other.voice and one.text.startswith(other.text) for other in own)
        )
        if not unseen:
            self._actions.failed.emit("The table was already calibrated on these; tick other sentences or voices.")
            return
        self._actions.attempt(lambda: self._strategy.measure_transfer(unseen))
