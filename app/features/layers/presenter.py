"""The layers presenter: what each layer of a speech language model is worth, which of them stay, and hearing the
rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QMainWindow, QWidget

from app.features.layers.model import LayerChoice
from app.shell.actions import Actions
from app.shell.notices import Notices
from app.shell.theme import Theme
from app.state.app_state import AppState
from app.state.jobs import Job, Kind, Outcome
from engine.errors import SettingError
from engine.models import catalogue
from engine.models.base import Utterance
from engine.session.messages import Event, LayersMeasured, MeasureImportance, Progress
from engine.setting.setting import Engaged
from engine.techniques import spade
from engine.techniques.engagement import problem
from engine.techniques.spade.record import COSINE, DIVERGENCE, WORD_ERROR
from engine.views import depth

if TYPE_CHECKING:
    from app.features.layers.panel import LayersPanel, MeasurePlan


class LayersPresenter(QObject):
    """Owns Layers."""

    training_wanted = Signal(object)
    """The user wants a student of these layers, a tuple of their numbers."""
    view_wanted = Signal(str)
    """The user wants the view of this name."""
    study_wanted = Signal(int)
    """The user wants a study that leaves out each layer once, on so many sentences."""

    def __init__(self, window: QMainWindow, state: AppState, actions: Actions, notices: Notices, theme: Theme) -> None:
        super().__init__(window)
        self._state = state
        self._actions = actions
        self._theme = theme
        self.choice = LayerChoice(state, self)
        self.choice.problem.connect(notices.warn)
        self.choice.measured.connect(self.refresh)
        self.layers: LayersPanel | None = None
        self._job = 0
        self.later: dict[str, Callable[[], QWidget]] = {"layers": self._build_layers}
        state.jobs.ended.connect(self._job_ended)

    @Slot()
    def refresh(self) -> None:
        """As :class:`app.features.presenter.Presenter` says."""
        if self.layers is None:
            return
        choice, state = self.choice, self._state
        self.layers.set_layers(choice.layers, choice.record, choice.retained, choice.depth, choice.by_hand)
        busy = "Wait for the running job, or press Esc to cancel it." if state.jobs.busy else ""
        stages = {stage: self._why_not_hear(stage) for stage in (spade.NONE, spade.PARTLY, spade.RECOVERED)}
        self.layers.set_reasons(self.why_not(), busy, stages)

    def why_not(self) -> str:
        """Why no layers can be left out of the chosen model, as a sentence, or ``""``."""
        state = self._state
        if not state.ready or state.info is None:
            return "The model is not loaded yet."
        if not self.choice.layers:
            return f"{state.info.title} decodes no tokens; load a speech language model to leave out layers."
        return ""

    def _why_not_hear(self, stage: str) -> str:
        state = self._state
        if self.why_not():
            return self.why_not()
        knobs = state.knobs(spade.NAME).replace(recovery=stage)
        setting = state.baseline_setting.with_technique(Engaged(spade.NAME, knobs))
        return state.why_not_synthesise() or problem(state.info, setting) or ""

    def _build_layers(self) -> QWidget:
        from app.features.layers.panel import LayersPanel

        self.layers = LayersPanel(self._theme.colours)
        attempt = self._actions.attempt
        self.layers.toggled.connect(lambda layer: attempt(lambda: self.choice.toggle(layer)))
        self.layers.depth_wanted.connect(self.choice.set_depth)
        self.layers.importance_wanted.connect(self.choice.choose_by_importance)
        self.layers.hear_wanted.connect(lambda stage: attempt(lambda: self.hear(stage)))
        self.layers.training_wanted.connect(lambda: self.training_wanted.emit(self.choice.retained))
        self.layers.measure_wanted.connect(lambda plan: attempt(lambda: self.measure(plan)))
        self.layers.study_wanted.connect(self.study_wanted)
        self.layers.saving_wanted.connect(lambda: self.view_wanted.emit(depth.VIEW.name))
        self.layers.cancel_wanted.connect(self._actions.cancel.trigger)
        self.refresh()
        return self.layers

    def follow(self, event: Event) -> None:
        """Show what was measured."""
        if isinstance(event, LayersMeasured):
            self.choice.take_up(event.record)

    @Slot(object)
    def show_progress(self, event: Progress) -> None:
        """Show how far the measurement is."""
        if self.layers is not None and event.job == self._job and self._state.jobs.find(event.job) is not None:
            self.layers.show_progress(event.done, event.total, event.seconds_left)

    def measure(self, plan: MeasurePlan) -> None:
        """Measure what each layer is worth. Raises :class:`PlainError` when it cannot be done."""
        state = self._state
        reason = self.why_not() or state.why_not_synthesise()
        if reason:
            raise SettingError(reason)
        measures = (DIVERGENCE, COSINE, *([WORD_ERROR] if plan.word_errors else []))
        spoken = tuple(Utterance(text, state.voice) for text in catalogue.harvard_sentences()[: plan.sentences])
        setting = state.baseline_setting
        self.layers.begin()
        job = state.jobs.start(Kind.LAYERS, lambda job: MeasureImportance(job, setting, spoken, measures))
        self._job = job.number

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.LAYERS and self.layers is not None:
            said = {Outcome.CANCELLED: "Cancelled; nothing was kept of it.", Outcome.FAILED: sentence}
            self.layers.end(said.get(outcome, ""), failed=outcome is Outcome.FAILED)

    def hear(self, stage: str) -> None:
        """Speak with the layers that stay, at this stage of recovery. Raises :class:`PlainError` when it cannot be
        done."""
        state = self._state
        state.set_knob(spade.NAME, "recovery", stage)
        state.engage(spade.NAME, True)
        state.synthesise_accelerated()
