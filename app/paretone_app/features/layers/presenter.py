"""The layers presenter: importance of layers, the choice of kept ones, and synthesis with them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from paretone.errors import SettingError, told
from paretone.models import catalogue
from paretone.models.base import Utterance
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, FILE, WORD_ERROR, ImportanceRecord, read_record
from paretone.paths import own_place
from paretone.session.commands import Prepare
from paretone.session.events import Event, Prepared
from paretone.setting.setting import UsedTechnique
from paretone.techniques import problem, spade
from paretone.techniques.spade import ImportanceRequest, LayersMeasured
from paretone.techniques.spade.views import DEPTH
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.features.studies.presenter import StudiesPresenter
from paretone_app.features.training.presenter import TrainingPresenter
from paretone_app.features.views.presenter import ViewsPresenter
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import require
from paretone_app.state.editing import ALONE, Edit
from paretone_app.state.jobs import Job, Kind, Outcome

if TYPE_CHECKING:
    from paretone_app.features.layers.panel import LayersPanel


class LayerChoice(QObject):
    """Measurement of the loaded model's layers, and the choice of kept layers."""

    measured = Signal()
    problem = Signal(str)
    """Why a record cannot be read."""

    def __init__(self, state: AppState, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self.record: ImportanceRecord | None = None
        state.selection.model_changed.connect(self.look)

    @property
    def layers(self) -> int:
        """Number of layers of the loaded model if they can be removed; else 0."""
        info = self._state.selection.info
        return info.layers if info is not None and info.family in spade.TECHNIQUE.families else 0

    @property
    def depth(self) -> int:
        """Number of kept layers if they are not chosen by hand."""
        knobs = self._state.selection.knobs(spade.NAME).replace(layers="")
        return min(spade.kept_count(knobs, self.layers), self.layers)

    @property
    def by_hand(self) -> bool:
        return bool(self._state.selection.knobs(spade.NAME)["layers"])

    @property
    def retained(self) -> tuple[int, ...]:
        """Kept layers, in order; all without a manual selection or a measurement."""
        if self.by_hand:
            listed = spade.listed_layers(self._state.selection.knobs(spade.NAME))
            return tuple(layer for layer in listed if layer < self.layers)
        if self.record is None or self.record.layers != self.layers:
            return tuple(range(self.layers))
        return self.record.retained(self.depth)

    def toggle(self, layer: int) -> None:
        """Keep ``layer``, or remove it if it is kept. Raises :class:`SettingError` for the last kept layer."""
        if not (kept := set(self.retained) ^ {layer}):
            raise SettingError("Keep at least one layer.")
        verb = "keep" if layer in kept else "remove"
        self._edit(f"{verb} layer {layer}", layers=",".join(map(str, sorted(kept))))

    def set_depth(self, depth: int) -> None:
        """Keep the ``depth`` most important layers; discards manual selection."""
        depth = max(1, min(depth, self.layers))
        if self.layers and (depth != self.depth or self.by_hand):
            self._edit("keep more or fewer layers", merging=2, depth=depth, layers="")

    def choose_by_importance(self) -> None:
        if self.by_hand:
            self._edit("keep the most important layers", layers="")

    def take_up(self, record: ImportanceRecord) -> None:
        if (info := self._state.selection.info) is not None and record.checkpoint == info.fingerprint:
            self.record, folder = record, own_place(info.id)
            if self._state.machine.host:  # Its files are not read from here.
                with told(self.problem.emit):
                    # Another checkpoint's record stays.
                    if not (folder / FILE).exists() or read_record([folder], record.checkpoint) is not None:
                        record.write(folder / FILE)
            self.measured.emit()

    def look(self) -> None:
        """Read the measurement of the loaded checkpoint, if there is one."""
        info = self._state.selection.info
        before, self.record = self.record, None
        if info is not None and self.layers:
            checkpoint = Path(info.checkpoint)
            folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
            # A checkpoint on a host lies elsewhere; a bundled model's record is here too.
            folders = folder, self._state.selection.entry.folder, own_place(info.id)
            with told(self.problem.emit):
                self.record = read_record(folders, info.fingerprint)
        if self.record is not before:
            self.measured.emit()

    def _edit(self, text: str, merging: int = ALONE, **values: object) -> None:
        knobs = self._state.selection.knobs(spade.NAME)
        before = {name: knobs[name] for name in ("depth", "layers")}
        self._state.undo_stack.push(Edit(text, before, before | values, self._put, merging))

    def _put(self, values: dict[str, object]) -> None:
        for name, value in values.items():
            self._state.selection.set_knob(spade.NAME, name, value)


_STAGES = {
    spade.NONE: ("&Pruned", "Hear the model with layers removed, before training"),
    spade.PARTLY: ("Br&iefly retrained", "Hear a student after some minutes of training"),
    spade.RECOVERED: ("Fully retr&ained", "Hear the fully trained student"),
}


class LayersPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._features = services.features
        self.choice = LayerChoice(services.state, self)
        self.choice.problem.connect(services.notices.warn)
        self.choice.measured.connect(self.refresh)
        self.layers: LayersPanel | None = None
        self.later = {"layers": self._build_layers}
        add, find = services.actions.add, services.features.find
        self._by_importance = add("By &importance", self.choice.choose_by_importance, "Discard manual selection")
        self._hear = {
            stage: add(title, partial(self.hear, stage), tip, partial(self._why_not_hear, stage))
            for stage, (title, tip) in _STAGES.items()
        }
        tip = "Open Training to train a student with these layers"
        self._train = add("&Train a student…", self._propose_training, tip, self.why_not)
        waits = partial(services.state.jobs.why_one, Kind.LAYERS, "Layers are being measured.")
        tip = "Measure the importance of each layer"
        self._measure = add("Measure &layers", self.measure, tip, lambda: self.why_not() or waits())
        self._cancel = self._add_cancel("Ca&ncel", Kind.LAYERS)
        tip = "Several voices and seeds; can be paused and resumed"
        self._study = add("Word errors as a stud&y…", self._propose_study, tip, self.why_not)
        tip, show = "Measure the saving at several depths (opens Views)", lambda: find(ViewsPresenter).open(DEPTH.name)
        self._saving = add("Memory and time by &depth", show, tip, self.why_not)

    def refresh(self) -> None:
        if self.layers is not None:
            choice = self.choice
            self.layers.set_layers(choice.layers, choice.record, choice.retained, choice.depth, choice.by_hand)
            self.layers.set_reason(self.why_not())

    def why_not(self) -> str:
        """Why no layers of the model can be removed, as a sentence, or ``""``."""
        state = self._state
        if reason := state.selection.why_not_ready():
            return reason
        if not self.choice.layers:
            return f"{state.selection.loaded.title} decodes no tokens; load a speech language model to remove layers."
        return ""

    def _why_not_hear(self, stage: str) -> str:
        state = self._state
        if reason := self.why_not():
            return reason
        knobs = state.selection.knobs(spade.NAME).replace(recovery=stage)
        setting = state.selection.baseline_setting.with_technique(UsedTechnique(spade.NAME, knobs))
        return state.availability.why_not_synthesise() or problem(state.selection.loaded, setting) or ""

    def _build_layers(self) -> LayersPanel:
        from paretone_app.features.layers.panel import LayersPanel

        can = {"by_importance": self._by_importance, "train": self._train, "measure": self._measure}
        can |= {"cancel": self._cancel, "study": self._study, "saving": self._saving}
        self.layers = LayersPanel(self._theme.colours, can, self._hear)
        self._bar = self.layers.progress
        self.layers.toggled.connect(lambda layer: self._actions.attempt(lambda: self.choice.toggle(layer)))
        self.layers.depth_changed.connect(self.choice.set_depth)
        return self.layers

    def _propose_study(self) -> None:
        from paretone_app.features.layers.study import KIND

        maker = self._features.find(StudiesPresenter).begin_new()
        maker.choose_kind(KIND.name, built(self.layers).sentences.value())
        maker.check()

    def _propose_training(self) -> None:
        kept = self.choice.retained
        training = self._features.find(TrainingPresenter)
        training.propose(spade.NAME, layers=",".join(map(str, kept)), depth=len(kept))

    def follow(self, event: Event) -> None:
        if isinstance(event, Prepared) and isinstance(event.result, LayersMeasured):
            self.choice.take_up(event.result.record)

    def measure(self) -> None:
        """Measure on the panel's number of sentences, and word errors if ticked. Raises :class:`SettingError`."""
        state, panel = self._state, built(self.layers)
        require(self.why_not() or state.availability.why_not_synthesise())
        measures = (DIVERGENCE, COSINE, *([WORD_ERROR] if panel.word_errors.isChecked() else []))
        texts = catalogue.harvard_sentences()[: panel.sentences.value()]
        spoken = tuple(Utterance(text, state.selection.speaker) for text in texts)
        request = ImportanceRequest(state.selection.baseline_setting, spoken, measures)
        panel.begin()
        job = state.jobs.start(Kind.LAYERS, lambda job: Prepare(job, spade.NAME, request))
        self._own_job = job.number

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.LAYERS and self.layers is not None:
            said = {Outcome.CANCELLED: "Cancelled; word errors so far are kept.", Outcome.FAILED: sentence}
            self.layers.end(said.get(outcome, ""), failed=outcome is Outcome.FAILED)

    def hear(self, stage: str) -> None:
        """Speak with the kept layers, at this stage of recovery. Raises :class:`PlainError` when it cannot be done."""
        state = self._state
        state.selection.set_knob(spade.NAME, "recovery", stage)
        state.selection.switch(spade.NAME, True)
        state.synthesis.synthesise_accelerated()
