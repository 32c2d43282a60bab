"""The synthesis presenter: the three runs of the main job, cancelling them, and how fast they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QMainWindow, QWidget

from app.shell.actions import Actions
from app.shell.status_line import StatusLine
from app.shell.theme import Theme
from app.state.app_state import AppState
from engine.session.messages import Telemetry
from engine.setting.take import Take

if TYPE_CHECKING:
    from app.features.meters.panel import MetersPanel


class SynthesisPresenter(QObject):
    """Owns Meters."""

    def __init__(
        self, window: QMainWindow, state: AppState, actions: Actions, status: StatusLine, theme: Theme
    ) -> None:
        super().__init__(window)
        self._state = state
        self._actions = actions
        self._status = status
        self._theme = theme
        self._device: tuple[str, str] = ("", "")
        self.meters: MetersPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"meters": self._build_meters}
        actions.bind(actions.baseline, state.synthesise_baseline)
        actions.bind(actions.calibrate, state.calibrate)
        actions.bind(actions.accelerated, state.synthesise_accelerated)
        actions.bind(actions.cancel, self.cancel)
        status.cancel_wanted.connect(self.cancel)
        state.take_added.connect(self._show_take)
        state.comparison_changed.connect(self._show_comparison)

    @Slot()
    def cancel(self) -> None:
        """Cancel everything that runs or waits."""
        if self._state.jobs.busy:
            self._status.say("Cancelling…")
            self._state.jobs.cancel_all()

    @Slot(object)
    def show_telemetry(self, event: Telemetry) -> None:
        """Show the live figures of a running job; those of one that has ended are passed over."""
        if self.meters is not None and self._state.jobs.find(event.job) is not None:
            self.meters.show_telemetry(event)

    def refresh(self) -> None:
        """As :class:`app.features.presenter.Presenter` says."""
        state, busy = self._state, self._state.jobs.busy
        waiting = "Wait for the running job, or press Esc to cancel it." if busy else ""
        for action, reason in (
            (self._actions.baseline, state.why_not_synthesise()),
            (self._actions.calibrate, state.why_not_calibrate()),
            (self._actions.accelerated, state.why_not_accelerate()),
        ):
            action.setEnabled(not reason and not busy)
            action.setToolTip(reason or waiting or action.statusTip())
        self._actions.cancel.setEnabled(busy)
        self._show_device()

    def _build_meters(self) -> QWidget:
        from app.features.meters.panel import MetersPanel

        self.meters = MetersPanel(self._theme.colours)
        self.meters.show_device(self._status.device.text())
        self._show_comparison()
        return self.meters

    def _show_device(self) -> None:
        state = self._state
        device = state.info.device if state.info is not None else state.device.upper() or "starting"
        if self._device == (device, state.machine):
            return
        self._device = device, state.machine
        self._status.show_device(device, state.machine)
        if self.meters is not None:
            self.meters.show_device(device)

    @Slot(object)
    def _show_take(self, take: Take) -> None:
        if self.meters is not None:
            self.meters.show_take(take)

    @Slot()
    def _show_comparison(self) -> None:
        if self.meters is not None:
            self.meters.show_comparison(self._state.take_a, self._state.take_b)
