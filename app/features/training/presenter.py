"""The training presenter: weights, drafts and students of the loaded model, usable as soon as they are there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.features.presenter import Presenter
from app.features.services import Services
from app.features.training.model import GUIDANCE_FREE, STUDENT, Place, Plan, Training, lasting, training
from app.shell import file_dialogs
from app.state.jobs import Job, Kind, Outcome
from engine.errors import SettingError
from engine.session.messages import Event, TrainingDone, TrainingProgress
from engine.techniques import guidance_free, spade, speculative

if TYPE_CHECKING:
    from app.features.training.panel import TrainingPanel

_CSV = "Manifest (*.csv)"
_LONG_MINUTES = 240
"""Above that, what is proposed wants an explanation."""


class TrainingPresenter(Presenter):
    """Owns Training."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._window = services.window
        self._state = services.state
        self._actions = services.actions
        self._docks = services.docks
        self._notices = services.notices
        self._theme = services.theme
        self._runs = services.folder / "training"
        """Where work folders are proposed."""
        self._proposed = ""
        """The work folder that was proposed last."""
        self._known: tuple[str, str] = "", ""
        """Of which training and model the usual time was proposed."""
        self._fitted: dict[str, str] = {}
        """For which checkpoint the knobs of a training were set to what fits it."""
        self.training: TrainingPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"training": self._build_training}
        services.state.jobs.ended.connect(self._job_ended)

    def refresh(self) -> None:
        if self.training is None:
            return
        info = self._state.info
        if info is not None:
            self.training.offer(info.family)
            self._suggest()
        self.training.set_reason(self.why_not() or self._state.jobs.why_wait)

    def why_not(self) -> str:
        """Why the chosen training cannot be done with the selected model, as a sentence, or ``""``."""
        state = self._state
        if not state.ready or state.info is None:
            return "The model is not loaded yet."
        chosen = self.training.training if self.training is not None else GUIDANCE_FREE
        if state.info.family not in chosen.families:
            return f"{state.info.title} cannot be trained here; load another model."
        if chosen is GUIDANCE_FREE and not state.may_train:
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
            if event.info is not None:
                self._make_ready(event)
            elif not event.technique:
                self._notices.say(event.summary, "info")

    def _make_ready(self, event: TrainingDone) -> None:
        """Set what the new weights are for, so that engaging the technique is all that is left to do."""
        state, figures = self._state, event.figures
        there = (*event.info.weight_sets, *event.info.drafts, *event.info.students)
        made = next((one.fingerprint for one in there if one.path == event.checkpoint), "")
        if event.technique == guidance_free.NAME:
            weight = float(figures["weight"])
            state.set_knob(guidance_free.NAME, "weight", round(weight, 2))
            self._notices.say(f"CFG-free weights for w = {weight:.2f} are ready: engage CFG-free.", "info")
        elif event.technique == speculative.NAME:
            state.set_knob(speculative.NAME, "draft", "trained")
            self._notices.say(f"A draft with {figures['layers']} layers is ready: engage SSD.", "info")
        elif event.technique == spade.NAME:
            state.set_knob(spade.NAME, "depth", int(figures["layers"]))
            state.set_knob(spade.NAME, "recovery", spade.RECOVERED)
            self._notices.say(f"A student with {figures['layers']} layers is ready: engage SPADE.", "info")
        state.choose_weights(event.technique, made)

    @Slot(float)
    def propose(self, weight: float) -> None:
        """Open Training, ready for weights of the guidance weight w = ``weight``."""
        self._propose(GUIDANCE_FREE, weight=weight)

    @Slot(object)
    def propose_student(self, layers: tuple[int, ...]) -> None:
        """Open Training, ready for a student of these layers."""
        self._propose(STUDENT, layers=",".join(map(str, layers)), depth=len(layers))

    def _propose(self, one: Training, **knobs: object) -> None:
        if self.training is not None:
            self._known = "", ""
            if self._state.info is not None:
                self.training.offer(self._state.info.family)
                self._fitted[one.name] = self._state.info.fingerprint
            self.training.choose(one.name, **knobs)
            self._suggest()
        self._docks.go_to("training")

    @Slot()
    def _suggest(self) -> None:
        """Propose the usual time of the chosen training, and a folder, unless the user has chosen one."""
        info, panel = self._state.info, self.training
        if info is None or info.family not in panel.training.families:
            return
        panel.set_corpus(self._may_be_spoken)
        chosen = panel.training
        if self._fitted.get(chosen.name) != info.fingerprint:
            self._fitted[chosen.name] = info.fingerprint
            panel.fit(chosen.fitting(info))
        panel_plan = panel.plan(resume=False)
        folder = str(self._runs / chosen.folder(info.id, panel_plan.knobs))
        fresh = self._known != (chosen.name, info.fingerprint)
        self._known = chosen.name, info.fingerprint
        minutes = chosen.minutes(info) if fresh else panel_plan.minutes
        work = folder if panel_plan.work in ("", self._proposed) else panel_plan.work
        self._proposed = folder
        if (minutes, work) != (panel_plan.minutes, panel_plan.work):
            panel.propose(minutes, work)
        if chosen is GUIDANCE_FREE:
            spoken = self._may_be_spoken
            before = (
                " Without a manifest, flite first speaks 6,800 sentences: about twelve more minutes." if spoken else ""
            )
            panel.set_estimate(
                f"{info.title} takes about {lasting(chosen.minutes(info))} of one CPU core, judging by the shipped "
                f"weights; a GPU is far faster.{before}"
            )
        else:
            panel.set_estimate(self._companion_estimate(chosen))

    @property
    def _may_be_spoken(self) -> bool:
        """Whether flite can speak what the model learns from."""
        return self._state.entry.bundled

    def _companion_estimate(self, chosen: Training) -> str:
        """How long a draft or a student takes, as a sentence, or ``""``."""
        info, usual = self._state.info, chosen.minutes(self._state.info)
        learnt = max((one.minutes for one in info.students if one.recovered), default=0.0)
        if chosen is STUDENT and learnt:
            return f"The present student was trained for {lasting(learnt)} of one CPU core."
        if chosen.takes_manifest and usual > _LONG_MINUTES:
            return (
                f"Estimate, scaled from LM mini by the size of {info.title}: {lasting(usual)} of one "
                "CPU core. A GPU is far faster."
            )
        return ""

    def start(self, plan: Plan) -> None:
        """Train. Raises :class:`PlainError` when it cannot be done."""
        state, reason = self._state, self.why_not()
        if reason:
            raise SettingError(reason)
        self.training.begin(plan.resume)
        place = Place(state.model_id, state.model_folder, state.model_variant, state.device_wanted)
        state.jobs.start(Kind.TRAIN, lambda job: training(plan.training).command(job, place, plan))

    def _build_training(self) -> QWidget:
        from app.features.training.panel import TrainingPanel

        self.training = TrainingPanel(self._theme.colours)
        self.training.start_wanted.connect(lambda plan: self._actions.attempt(lambda: self.start(plan)))
        self.training.cancel_wanted.connect(self._actions.cancel.trigger)
        self.training.manifest_wanted.connect(self._ask_for_manifest)
        self.training.work_wanted.connect(self._ask_for_work_folder)
        self.training.training_chosen.connect(self._choose)
        self.refresh()
        return self.training

    @Slot(str)
    def _choose(self, _: str) -> None:
        self._suggest()
        self.refresh()

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
        from app.features.training.panel import CHECKPOINT

        if job.kind is Kind.TRAIN and self.training is not None:
            kept = (Path(job.command.work) / CHECKPOINT).is_file()
            cancelled = "Cancelled. Resume continues from the checkpoint in the work folder." if kept else "Cancelled."
            said = cancelled if outcome is Outcome.CANCELLED else sentence
            self.training.end(said, failed=outcome is Outcome.FAILED)
