"""The application's state with a model loaded, and takes for it, without any engine."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from paretone.models.base import OperationCounts
from paretone.session.commands import Command
from paretone.session.events import JobFinished, ModelLoaded, Prepared
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Take, Trace
from paretone.techniques.ditreducio.record import Calibrated, CalibrationRecord
from paretone_app.features.guidance import why_no_guidance
from paretone_app.features.strategy.state import StrategyState
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs
from tests.app.records import LAYERS, STEPS, record
from tests.engine.known_model import FLOW

INFO = replace(FLOW, layers=LAYERS)
OPERATIONS = OperationCounts(attention=4.0, feed_forward=6.0, fixed=1.0, layers=LAYERS, branches=2)


class Presenter:
    """A state whose commands are kept, and whose model is loaded at the records' number of steps."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[Command] = []
        self.state = AppState(Jobs(self.sent.append))
        self.strategy = StrategyState(self.state, folder)
        self.state.availability.explain("guidance", lambda: why_no_guidance(self.state.selection))
        self.state.loading.load_model("f5-mini")
        self.state.follow(ModelLoaded(1, replace(INFO, knobs=self.state.selection.entry.options), 0.1))
        self.state.jobs.handle(JobFinished(1))
        self.state.selection.set_option("steps", STEPS)

    def calibrated(self, found: CalibrationRecord) -> None:
        """A calibration ends with ``found``."""
        event = Prepared(2, "ditreducio", Calibrated(found, OPERATIONS, 1.0))
        self.state.follow(event)
        self.strategy.follow(event)

    def take(self, setting: Setting, name: str = "one", text: str = "A text.", mel: float = 0.0) -> Take:
        trace = Trace(mel=np.full((5, 3), mel, np.float32))
        measured, samples = Measurements(seconds=1.0, audio_seconds=2.0, device="cpu"), np.zeros(48000, np.float32)
        return Take(name, "2026-11-21", text, "anna", setting, 24000, samples, trace, measurements=measured)


def calibrated(presenter: Presenter) -> AppState:
    """The presenter's state once a calibration is there."""
    presenter.calibrated(record())
    return presenter.state
