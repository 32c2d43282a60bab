"""The guide's presenter: what of the main job is done, and what to press next."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from app.features.export.presenter import ProfilePresenter
from app.features.guide.panel import Guide
from app.features.listen.presenter import ListeningPresenter
from app.state.app_state import AppState


class GuidePresenter:
    """Owns no panel: the guide is the bar above them."""

    def __init__(
        self,
        guide: Guide,
        state: AppState,
        listening: ListeningPresenter,
        profiles: ProfilePresenter,
        calibrate: QAction,
    ) -> None:
        """``calibrate`` is the step that only some models have."""
        self._guide = guide
        self._calibrate = calibrate
        self._state = state
        self._listening = listening
        self._profiles = profiles
        self.later: Mapping[str, Callable[[], QWidget]] = {}

    def refresh(self) -> None:
        """As :class:`app.features.presenter.Presenter` says."""
        state, running = self._state, self._state.jobs.running
        accelerated = state.take_b is not None and bool(state.take_b.setting.techniques)
        done = (
            state.take_a is not None and not state.take_a.setting.techniques,
            state.table is not None and not state.table_problem(),
            accelerated,
            self._listening.compared and accelerated,
            self._profiles.exported,
        )
        instead = ""
        if state.jobs.held:
            instead = "A listening test is on, and the engine rests. Its keys are at the bottom of the page."
        elif running:
            instead = f"{running[0].kind.value}… You can look around meanwhile; <b>Esc</b> cancels."
        elif not state.ready:
            instead = "The model is not loaded. Choose one under <b>Model</b> on the left."
        elif done[0] and not accelerated and not state.setting.techniques:
            instead = "<b>Next:</b> engage a technique on the left, then speak the same sentence with it."
        calibrated = any(one.prepared_by == "calibration" for one in state.techniques)
        self._guide.show_progress(done, instead, () if calibrated else (self._calibrate,))
