"""The training presenter: weights, drafts and students of the loaded model, ready for use once trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from paretone.extras import why_no_training
from paretone.session.commands import Prepare
from paretone.session.events import Event, PreparationReport, Prepared, Progress
from paretone.techniques import technique
from paretone.training.forms import Place, TrainingPlan, training_forms
from paretone.training.requests import Trained, TrainingProgress, TrainingRequest, has_run
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.numbers import localised
from paretone_app.state.availability import require
from paretone_app.state.jobs import Job, Kind, Outcome

if TYPE_CHECKING:
    from paretone_app.features.training.panel import TrainingPanel

_SET = "Evaluation set (*.lst *.csv *.txt)"


def _training(job: Job) -> Prepare | None:
    command = job.command
    return command if isinstance(command, Prepare) and isinstance(command.request, TrainingRequest) else None


class TrainingPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._runs = services.folder / "training"
        self._proposed = ""
        self._known: tuple[str, str] = "", ""
        """Training and model whose usual time was proposed last."""
        self._fitted: dict[str, str] = {}
        """Checkpoint to which the knobs were last fitted, by training."""
        self._used: set[str] = set()
        """Techniques with a training that were in use at the last refresh."""
        self.training: TrainingPanel | None = None
        self.later = {"training": self._build_training}
        add = services.actions.add
        tip = "Train from the model's own weights"
        self._start = add("St&art", lambda: self.start(built(self.training).plan(resume=False)), tip, self._why_not_now)
        tip = "Continue from the checkpoint"
        self._resume = add("Resume", lambda: self.start(built(self.training).plan(resume=True)), tip, self._why_not_now)
        self._cancel = self._add_cancel("Cance&l", Kind.TRAIN, "Stop and keep a checkpoint for resuming")
        self._choosing = {
            f"choose_{name}": add("…", partial(self._ask, name, ask), f"Choose the {title}")
            for name, title, ask in (
                ("manifest", "manifest", partial(self._ask_for_file, "Manifest", "Manifest (*.csv)")),
                ("validation", "validation set", partial(self._ask_for_file, "Validation set", _SET)),
                ("work", "work folder", partial(self._ask_for_folder, "Work folder")),
            )
        }

    def refresh(self) -> None:
        if self.training is None:
            return
        self.training.elsewhere = bool(self._state.machine.host)
        if (info := self._state.selection.info) is not None:
            self.training.offer(info.family, info.mel_flow)
            # Choose the training of a technique newly switched on.
            used = self._in_use
            added, self._used = used - self._used, used
            if len(added) == 1:
                self.training.follow(added.pop())
            self._suggest()
        self._start.refresh()
        self._resume.refresh()

    @property
    def _in_use(self) -> set[str]:
        return {one.name for one in training_forms() if self._state.selection.is_used(one.name)}

    def why_not(self) -> str:
        """Why the chosen training cannot be done with the selected model, as a sentence, or ``""``."""
        state = self._state
        if reason := state.selection.why_not_ready():
            return reason
        info = state.selection.loaded
        chosen = self.training.training if self.training is not None else training_forms()[0]
        if info.family not in chosen.families:
            return f"{info.title} cannot be trained here; load another model."
        # A host checks its packages itself, when the training begins.
        return chosen.why_not(info) or ("" if self._state.machine.host else why_no_training())

    def _why_not_now(self) -> str:
        return self.why_not() or self._state.jobs.why_one(Kind.TRAIN, "A training runs, or waits in the queue.")

    def show_reports(self, events: Sequence[Event]) -> None:
        if self.training is not None:
            for event in events:
                running = self._state.jobs.find(event.job) is not None
                if isinstance(event, PreparationReport) and isinstance(event.report, TrainingProgress) and running:
                    self.training.show_progress(event.report)

    def show_progress(self, event: Progress) -> None:
        job = self._state.jobs.find(event.job)
        if self.training is not None and job is not None and job.kind is Kind.TRAIN:
            self.training.show_preparing(event.done, event.total, event.seconds_left, event.text)

    def follow(self, event: Event) -> None:
        if self.training is None or self._state.jobs.find(event.job) is None:
            return
        if isinstance(event, Prepared) and isinstance(event.result, Trained):
            self.training.show_result(event.result)
            # Choose the new weights and set their knobs, so that the user only has to switch the technique on.
            name, info = event.technique, event.info or self._state.selection.info
            weights = technique(name).weights
            there = weights.all_of(info) if weights is not None and info is not None else ()
            made = next((one.fingerprint for one in there if one.path == event.result.checkpoint), "")
            knobs, sentence = self.training.forms[name].ready(event.result.figures)
            for knob, value in knobs.items():
                self._state.selection.set_knob(name, knob, value)
            if sentence:
                self._notices.say(localised(sentence), "info")
            self._state.selection.choose_weights(name, made)

    def propose(self, technique: str, **knobs: object) -> None:
        """Open Training, ready to train for ``technique`` with these knobs."""
        self._used = self._in_use
        if self.training is not None:
            self._known = "", ""
            if self._state.selection.info is not None:
                self.training.offer(self._state.selection.info.family, self._state.selection.info.mel_flow)
                self._fitted[technique] = self._state.selection.info.fingerprint
            self.training.choose(technique, **knobs)
            self._suggest()
        self._workspaces.go_to("training")

    def _suggest(self) -> None:
        """Propose the usual time of the chosen training, and a folder, unless the user has chosen one."""
        info, panel = self._state.selection.info, built(self.training)
        if info is None or info.family not in panel.training.families:
            return
        spoken = self._state.selection.entry.bundled  # Models that ship can speak what they learn from.
        chosen = panel.training
        if self._fitted.get(chosen.name) != info.fingerprint:
            self._fitted[chosen.name] = info.fingerprint
            panel.fit(chosen.fitting(info))
        panel_plan = panel.plan(resume=False)
        panel.set_corpus(spoken, localised(chosen.estimate(info, spoken and not panel_plan.knobs.get("sentences"))))
        folder = str(self._runs / chosen.folder(info.id, panel_plan.knobs))
        fresh = self._known != (chosen.name, info.fingerprint)
        self._known = chosen.name, info.fingerprint
        minutes = chosen.minutes(info) if fresh else panel_plan.minutes
        work = folder if panel_plan.work in ("", self._proposed) else panel_plan.work
        self._proposed = folder
        if (minutes, work) != (panel_plan.minutes, panel_plan.work):
            panel.propose(minutes, work)

    def start(self, plan: TrainingPlan) -> None:
        require(self.why_not())
        state = self._state
        chosen, one = state.selection, built(self.training).forms[plan.training]
        where = chosen.model_id, chosen.model_folder, chosen.model_variant, chosen.device_wanted
        place = Place(*where, chosen.vocoder(chosen.model_id))
        request = one.request(place, plan)
        state.jobs.replace_left(lambda job: (left := _training(job)) is not None and left.request.work == request.work)
        state.jobs.start(Kind.TRAIN, lambda job: Prepare(job, one.name, request))

    def _build_training(self) -> TrainingPanel:
        from paretone_app.features.training.panel import TrainingPanel

        can = {"start": self._start, "resume": self._resume, "cancel": self._cancel, **self._choosing}
        self.training = TrainingPanel(self._theme.colours, can)
        self.training.install.follow(self._state.installing)
        self.training.training_chosen.connect(self.refresh)
        for job in self._state.jobs.running:
            self.job_began(job)
        return self.training

    def _ask(self, name: str, ask: Callable[..., object]) -> None:
        """Ask for the file or folder in the field called ``name``."""
        ask(lambda path: getattr(built(self.training), name).setText(str(path)), of_engine=True)

    def job_began(self, job: Job) -> None:
        """Show a training that begins, which may be of the last session."""
        command, panel = _training(job), self.training
        if panel is not None and command is not None:
            request = command.request
            if panel.training.name != command.technique:
                panel.choose(command.technique)
            panel.propose(request.minutes or panel.minutes.value(), request.work)
            panel.begin(request.resume or request.begun_again)

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.TRAIN and self.training is not None:
            command = _training(job)
            kept = command is not None and has_run(command.request.work)
            cancelled = "Cancelled. Resume continues from the checkpoint in the work folder." if kept else "Cancelled."
            if host := self._state.machine.host:
                cancelled = f"Cancelled. Resume continues from the last checkpoint on {host}, if there is one."
            said = cancelled if outcome is Outcome.CANCELLED else sentence
            self.training.end(said, failed=outcome is Outcome.FAILED)
