"""The transfer presenter: whether the strategy table serves sentences and voices that it was not calibrated on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QMainWindow, QWidget

from app.shell.actions import Actions
from app.shell.docks import Docks
from app.shell.theme import Theme
from app.state.app_state import AppState
from engine.models import catalogue
from engine.models.base import Utterance
from engine.session.messages import Event, TransferMeasured

if TYPE_CHECKING:
    from app.features.transfer.panel import TransferPanel


class TransferPresenter(QObject):
    """Owns Transfer."""

    def __init__(self, window: QMainWindow, state: AppState, actions: Actions, docks: Docks, theme: Theme) -> None:
        super().__init__(window)
        self._state = state
        self._actions = actions
        self._theme = theme
        self.transfer: TransferPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"transfer": self._build_transfer}
        actions.bind(actions.calibrate_on, lambda: docks.go_to("transfer"))

    def refresh(self) -> None:
        """As :class:`app.features.presenter.Presenter` says."""
        if self.transfer is None:
            return
        state = self._state
        waiting = "Wait for the running job, or press Esc to cancel it." if state.jobs.busy else ""
        self.transfer.set_voices(state.voices)
        self.transfer.set_own(state.calibrated_on)
        self.transfer.set_table(state.table.fingerprint if state.table is not None else "")
        self.transfer.set_reasons(state.why_not_transfer() or waiting, state.why_not_calibrate() or waiting)

    def follow(self, event: Event) -> None:
        """Show what was measured."""
        if isinstance(event, TransferMeasured) and self.transfer is not None:
            self.transfer.show_report(event.report)

    def _build_transfer(self) -> QWidget:
        from app.features.transfer.panel import TransferPanel

        sentences = (*catalogue.harvard_sentences(), *catalogue.sentences())
        self.transfer = TransferPanel(sentences, self._theme.colours)
        self.transfer.calibrate_wanted.connect(self._calibrate)
        self.transfer.transfer_wanted.connect(self._measure)
        self.refresh()
        return self.transfer

    @Slot(object, str)
    def _calibrate(self, utterances: tuple[Utterance, ...], combine: str) -> None:
        self._actions.attempt(lambda: self._state.calibrate_on(utterances, combine))

    @Slot(object)
    def _measure(self, utterances: tuple[Utterance, ...]) -> None:
        # Calibrations keep the first passage of a text, which is what is measured as well.
        own = self._state.calibrated_on
        unseen = tuple(
            one
            for one in utterances
            if not any(one.voice == other.voice and one.text.startswith(other.text) for other in own)
        )
        if not unseen:
            self._actions.failed.emit("The table was calibrated on just these; tick other sentences or voices.")
            return
        self._actions.attempt(lambda: self._state.measure_transfer(unseen))
