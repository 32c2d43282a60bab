"""The training desk: CFG-free weights made from the user's own recordings, usable as soon as they are there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QMainWindow, QWidget

from app import file_dialogs
from app.actions import Actions
from app.jobs import Job, Kind, Outcome
from app.layout import Docks
from app.notices import Notices
from app.state import AppState
from app.theme import Theme
from engine.errors import SettingError
from engine.messages import Event, TrainGuidanceFree, TrainingDone, TrainingProgress
from engine.models.base import ModelInfo
from engine.techniques import guidance_free

if TYPE_CHECKING:
    from app.panels.training import Plan, TrainingPanel

MEASURED_MINUTES, MEASURED_PARAMETERS = 15.0, 8_200_000
"""What the shipped weights of the bundled model took on one processor core with bfloat16; a step's work grows with the
number of parameters."""
_CSV = "Manifest (*.csv)"


def usual_minutes(info: ModelInfo) -> float:
    """Processor minutes that a training of the model takes by what the bundled one's took."""
    return max(1.0, round(MEASURED_MINUTES * info.parameters / MEASURED_PARAMETERS))


class TrainingDesk(QObject):
    """Owns Training."""

    def __init__(
        self,
        window: QMainWindow,
        state: AppState,
        actions: Actions,
        docks: Docks,
        notices: Notices,
        theme: Theme,
        runs: Path,
    ) -> None:
        """``runs`` is where work folders are proposed."""
        super().__init__(window)
        self._window = window
        self._state = state
        self._actions = actions
        self._docks = docks
        self._notices = notices
        self._theme = theme
        self._runs = runs
        self._estimated = 0
        self.training: TrainingPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"training": self._build_training}
        state.jobs.ended.connect(self._job_ended)

    def refresh(self) -> None:
        """As :class:`app.desks.desk.Desk` says."""
        if self.training is None:
            return
        busy = self._state.jobs.busy
        waiting = "Wait for the running job, or press Esc to cancel it." if busy else ""
        self.training.set_reason(self.why_not() or waiting)
        info = self._state.info
        if info is not None and info.parameters != self._estimated:
            self._estimated = info.parameters
            self.training.set_estimate(
                f"{info.title} takes about {_long(usual_minutes(info))} of a processor core, judging by the shipped "
                "weights; a GPU is far faster."
            )

    def why_not(self) -> str:
        """Why nothing can be trained for the selected model, as a sentence, or ``""``."""
        state = self._state
        if not state.ready or state.info is None:
            return "The model is not loaded yet."
        if not state.may_train:
            return (
                f"{state.info.title} cannot be trained here: only models of the F5-TTS family that are not CFG-free "
                "already."
            )
        return ""

    def follow(self, event: Event) -> None:
        """Show the curves and the result of a training."""
        if self.training is None or self._state.jobs.find(event.job) is None:
            return
        if isinstance(event, TrainingProgress):
            self.training.show_progress(event)
        elif isinstance(event, TrainingDone):
            self.training.show_result(event)
            if event.info is not None and event.technique == guidance_free.NAME:
                weight = float(event.figures["weight"])
                self._state.set_knob(guidance_free.NAME, "weight", round(weight, 2))
                self._notices.say(f"CFG-free weights for w = {weight:.2f} are ready: engage CFG-free.", "info")

    @Slot(float)
    def propose(self, weight: float) -> None:
        """Open Training, ready for weights of the guidance weight w = ``weight``."""
        info = self._state.info
        if self.training is not None and info is not None:
            work = self._runs / f"{self._state.model_id}-w-{weight:.2f}"
            self.training.propose(weight, usual_minutes(info), str(work))
        self._docks.go_to("training")

    def start(self, plan: Plan) -> None:
        """Train. Raises :class:`PlainError` when it cannot be done."""
        state, reason = self._state, self.why_not()
        if reason:
            raise SettingError(reason)
        self.training.begin(plan.resume)
        state.jobs.start(
            Kind.TRAIN,
            lambda job: TrainGuidanceFree(
                job,
                state.model_id,
                plan.manifest,
                plan.work,
                plan.weight,
                plan.method,
                minutes=plan.minutes,
                resume=plan.resume,
                half_precision=plan.half_precision,
                folder=state.model_folder,
                variant=state.model_variant,
                device=state.device_wanted,
            ),
        )

    def _build_training(self) -> QWidget:
        from app.panels.training import TrainingPanel

        self.training = TrainingPanel(self._theme.colours)
        self.training.start_wanted.connect(lambda plan: self._actions.attempt(lambda: self.start(plan)))
        self.training.cancel_wanted.connect(self._actions.cancel.trigger)
        self.training.manifest_wanted.connect(self._ask_for_manifest)
        self.training.work_wanted.connect(self._ask_for_work_folder)
        self.refresh()
        return self.training

    @Slot()
    def _ask_for_manifest(self) -> None:
        file_dialogs.ask_for_file(
            self._window, "Manifest", _CSV, lambda path: self.training.manifest.setText(str(path))
        )

    @Slot()
    def _ask_for_work_folder(self) -> None:
        file_dialogs.ask_for_folder(self._window, "Work folder", lambda path: self.training.work.setText(str(path)))

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        from app.panels.training import CHECKPOINT

        if job.kind is Kind.TRAIN and self.training is not None:
            kept = (Path(job.command.work) / CHECKPOINT).is_file()
            cancelled = f"Cancelled. {'The work folder holds a checkpoint to resume from.' if kept else ''}".strip()
            said = cancelled if outcome is Outcome.CANCELLED else sentence
            self.training.end(said, failed=outcome is Outcome.FAILED)


def _long(minutes: float) -> str:
    return f"{minutes:.0f} minute{'' if minutes == 1 else 's'}" if minutes < 120 else f"{minutes / 60:.0f} hours"
