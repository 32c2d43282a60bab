"""The selection: model, voice, text, sampler options, techniques and their knobs, with signals and without widgets.

Text and seed are common. All else is selected per model: nothing of one model reaches another, and a model that is
chosen again has what it had.

:mod:`paretone_app.state.availability` says what can be done with it; :mod:`paretone_app.state.artefacts` keeps the
techniques' artefacts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from paretone.errors import PlainError, SettingError
from paretone.models import catalogue
from paretone.models.base import ModelInfo, TrainedWeights, Utterance, Voice
from paretone.sampling.schedules import first_halved, time_grid
from paretone.setting.knobs import Knob, Values, checked
from paretone.setting.library import TakeSummary
from paretone.setting.plan import FlowPlan
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Take
from paretone.techniques import applying_to, options_in_force, resolve, technique, techniques
from paretone.techniques.base import Technique
from paretone.techniques.trained import fitting
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.differences import caution_on_repeating
from paretone_app.state.model_selection import ModelSelection, Remembered, RememberedModel


def plan_times(plan: Any) -> tuple[float, ...]:
    """Step times, placed ones included; empty unless it is a flow plan."""
    if not isinstance(plan, FlowPlan):
        return ()
    times = option_times(plan.options) if plan.times is None else plan.times
    return tuple(first_halved(np.array(times, np.float32)).tolist()) if plan.halves_first and times else times


def option_times(options: Values) -> tuple[float, ...]:
    """Those that ``options`` make; none if they make no grid."""
    try:
        times = time_grid(int(options["steps"]), str(options["spacing"]), float(options["sway"]))
    except (KeyError, SettingError):
        return ()
    return tuple(float(time) for time in times)


SEED_LIMIT = 2**31 - 1
Choices = Mapping[tuple[str, ...], object]
"""What the user chose, by what it is: ``("text",)``, ``("option", name)``, ``("knob", technique, knob)`` …"""


@dataclass(frozen=True)
class NotRecalled:
    """A model that was chosen in the last session and is not again."""

    model: str
    why: str
    """A sentence without its stop."""
    is_there: bool


class Selection(QObject):
    """The user's choices, whether or not they can be used."""

    model_changed = Signal()
    """Another model was chosen, or it finished loading."""
    conditions_changed = Signal()
    """Something changed that artefacts depend on: model, sampler options, techniques or knobs. Those who keep artefacts
    follow; everybody else hears :attr:`changed` after that."""
    changed = Signal()
    """Voice, text, sampler options, techniques, knobs, seed or an artefact changed."""
    passed_over = Signal(str)
    """What was remembered and is not there any more, in sentences."""

    def __init__(self, artefacts: Artefacts, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._artefacts = artefacts
        self._announcing = False
        artefacts.changed.connect(self._artefact_changed)
        self.model_id = catalogue.MODELS[0].id
        self.model_folder = ""
        self.model_variant = ""
        self.device_wanted = "auto"
        self.vocoders: dict[str, str] = {}
        """By model, the folder of the vocoder that it was loaded with, if that is not the usual one."""
        self.candidate = ""
        """Id of another model that is shown, but was not loaded yet; ``""`` if there is none."""
        self.info: ModelInfo | None = None
        self.loading = False
        self.text = next(iter(catalogue.sentences()), "")
        self.own_voices: list[Voice] = []
        self.seed = 0
        self.seed_locked = True
        self.not_recalled: NotRecalled | None = None
        """The model of the last session, if another one is chosen in its place."""
        self._remembered: dict[str, RememberedModel] = {}
        """What was selected in earlier sessions, of models that were not chosen yet in this one."""
        self._models: dict[str, ModelSelection] = {}
        self._own = self._of(self.model_id)

    def announce(self, model: bool = False) -> None:
        """Say that conditions changed, and the chosen or loaded ``model`` with them."""
        self._announcing = True
        try:
            self.conditions_changed.emit()
            if model and self.ready and self._own.artefacts:
                kept, self._own.artefacts = self._own.artefacts, {}
                self._artefacts.put_back(kept)
            if model:
                self.model_changed.emit()
        finally:
            self._announcing = False
        self.changed.emit()

    @Slot()
    def _artefact_changed(self) -> None:
        if not self._announcing:
            self.changed.emit()

    # --- Model --------------------------------------------------------------------------------------------------------
    def choose_model(self, model: str, folder: str, variant: str, device: str, info: ModelInfo | None) -> None:
        """Select a model, loaded (``info``) or not yet, with what was selected of it before."""
        if self.ready:
            self._own.artefacts = self._artefacts.in_use
        self.model_id, self.model_folder, self.model_variant, self.device_wanted = model, folder, variant, device
        self.info = info
        self.candidate = ""
        self._own = self._of(model)
        had, voices = self.voice, self.voices
        # One's own may have another title or transcript by now.
        self.voice = next((one for one in voices if had is not None and one.id == had.id), next(iter(voices), None))
        self.announce(model=True)

    def consider_model(self, model: str) -> None:
        """Show ``model``, which is to be loaded once the user confirms that. Nothing can run meanwhile."""
        candidate = "" if model == self.model_id else model
        if candidate != self.candidate:
            self.candidate = candidate
            self.changed.emit()

    def loading_ended(self) -> None:
        """The chosen model is not being loaded any more, whether that went well or not."""
        if self.loading:
            self.loading = False
            self.changed.emit()

    def set_info(self, info: ModelInfo) -> None:
        """The chosen model was loaded, or has new weights."""
        self.info = info
        self._own.folder, self._own.variant = self.model_folder, self.model_variant
        self.announce(model=True)

    def place(self, model: str) -> tuple[str, str]:
        """Folder and architecture to load ``model`` with: those that served it last, if they are still there."""
        own = self._models.get(model) or self._remembered.get(model)
        folder, variant = (own.folder, own.variant) if own is not None else ("", "")
        if model == self.model_id:
            folder, variant = self.model_folder, self.model_variant
        return (folder, variant) if not folder or Path(folder).exists() else ("", "")

    def vocoder(self, model: str) -> str:
        """Folder of the vocoder to load ``model`` with, if it is still there; ``""`` for the usual one."""
        folder = self.vocoders.get(model, "")
        return folder if Path(folder).is_dir() else ""

    def is_installed(self, model: str) -> bool:
        """Whether the files of ``model`` are there: in its usual folder, or where the user has them."""
        return bool(self.place(model)[0]) or catalogue.entry(model).available

    @property
    def entry(self) -> catalogue.CatalogueEntry:
        return catalogue.entry(self.model_id)

    @property
    def ready(self) -> bool:
        return self.info is not None and self.info.id == self.model_id

    def why_not_ready(self) -> str:
        """Why the model that is shown cannot be used yet, as a sentence, or ``""``."""
        if not self.candidate and self.loading and not self.ready:
            return f"{self.entry.title} is being loaded, which takes some seconds."
        if not self.candidate:
            return "" if self.ready else "The model is not loaded yet. Choose one under Model in Setup, and press Load."
        shown = catalogue.entry(self.candidate)
        todo = "press Load" if self.is_installed(shown.id) else "choose its folder or download it"
        return f"{shown.title} is chosen but not loaded: {todo}, or choose {self.entry.title} again."

    @property
    def loaded(self) -> ModelInfo:
        """The chosen model, for what needs it loaded. Raises :class:`SettingError` if it is not."""
        if self.info is None or not self.ready:
            raise SettingError("The model is not loaded yet.")
        return self.info

    @property
    def sampler_knobs(self) -> tuple[Knob, ...]:
        return self.entry.options

    @property
    def sampler_defaults(self) -> Values:
        """The chosen model's own defaults, which may differ from those of its knobs."""
        return self.entry.options_with()

    @property
    def techniques(self) -> tuple[Technique, ...]:
        return applying_to(self.entry.family, self.sampler_knobs, self.entry.mel_steps)

    def _options_like(self, options: Mapping[str, object]) -> Values:
        """The chosen model's options, with those of ``options`` that it knows."""
        known = {knob.name: options[knob.name] for knob in self.sampler_knobs if knob.name in options}
        return checked(self.sampler_knobs, {**self.sampler_defaults, **known}, self.entry.title)

    # --- Per model ----------------------------------------------------------------------------------------------------
    @property
    def options(self) -> Values:
        return self._own.options

    @property
    def voice(self) -> Voice | None:
        """The voice that the chosen model speaks in; ``None`` if it has none."""
        return self._own.voice

    @voice.setter
    def voice(self, voice: Voice | None) -> None:
        self._own.voice = voice

    def _of(self, model: str) -> ModelSelection:
        """What is selected of ``model``, which was just chosen."""
        if model not in self._models:
            entry, voice = catalogue.entry(model), next(iter(self.voices), None)
            own = self._models[model] = ModelSelection(entry.options_with(), voice)
            saved = self._remembered.pop(model, None)
            if saved is not None and (gone := own.recall(saved, entry, self.voices)):
                self.passed_over.emit(f"Not as in the last session: {'; '.join(gone)}.")
        return self._models[model]

    # --- Voice, text and seed -----------------------------------------------------------------------------------------
    @property
    def voices(self) -> tuple[Voice, ...]:
        return (*catalogue.voices(self.model_id, self.model_folder), *self.own_voices)

    @property
    def speaker(self) -> Voice:
        """The chosen voice, for what needs one. Raises :class:`SettingError` if there is none."""
        if self.voice is None:
            raise SettingError("Choose a voice first.")
        return self.voice

    @property
    def utterance(self) -> Utterance:
        return Utterance(self.text, self.speaker)

    def choose_voice(self, voice: str) -> None:
        for one in self.voices:
            if one.id == voice:
                self.voice = one
                self.changed.emit()
                return
        raise SettingError(f"There is no voice {voice!r}; choose one of {', '.join(one.id for one in self.voices)}.")

    def put_own_voices(self, voices: Iterable[Voice], chosen: Voice | None) -> None:
        """Have the recordings ``voices``, and choose one of all voices: the first if ``chosen`` is not there."""
        self.own_voices = list(voices)
        self.voice = chosen if chosen in self.voices else next(iter(self.voices), None)
        self.changed.emit()

    def set_text(self, text: str) -> None:
        if text != self.text:
            self.text = text
            self.changed.emit()

    def set_seed(self, seed: int) -> None:
        if seed != self.seed:
            self.seed = seed
            self.changed.emit()

    def set_seed_locked(self, locked: bool) -> None:
        """Keep the seed (locked), or draw a new one before each baseline."""
        self.seed_locked = locked

    # --- Options and techniques ---------------------------------------------------------------------------------------
    def set_option(self, name: str, value: object) -> None:
        """Change one of the model's own knobs. A calibration for the new step grid is taken up where one exists."""
        if self.options.get(name) == value:
            return
        self._own.options = checked(self.sampler_knobs, self.options.replace(**{name: value}), self.entry.title)
        self.announce()

    def is_used(self, name: str) -> bool:
        return self._own.used[name] and any(one.name == name for one in self.techniques)

    def switch(self, name: str, on: bool) -> None:
        if self._own.used[name] != on:
            self._own.used[name] = on
            self.announce()

    def knobs(self, name: str) -> Values:
        return self._own.knobs[name]

    def set_knob(self, name: str, knob: str, value: object) -> None:
        """Change one knob of a technique. One that an artefact follows is changed together with that."""
        source = self._artefacts.source(name)
        if source is not None and source.set_knob(knob, value):
            return
        if self._own.knobs[name][knob] == value:
            return
        self._own.knobs[name] = checked(technique(name).knobs, self._own.knobs[name].replace(**{knob: value}), name)
        self.announce()

    def fitting_weights(self, name: str) -> tuple[TrainedWeights, ...]:
        """The trained weights of the loaded model that a technique can be used with, the usual ones first."""
        return fitting(self.loaded, name, self._own.knobs[name]) if self.ready else ()

    def chosen_weights(self, name: str) -> str:
        """The fingerprint of those that were chosen; ``""`` for the usual ones, and where what was chosen does not fit
        any more."""
        chosen = self._own.weights.get(name, "")
        return chosen if any(one.fingerprint == chosen for one in self.fitting_weights(name)) else ""

    def choose_weights(self, name: str, fingerprint: str) -> None:
        """Use a technique with the weights that have this fingerprint; ``""`` for the usual ones."""
        if self._own.weights.get(name, "") != fingerprint:
            self._own.weights[name] = fingerprint
            self.changed.emit()

    def put_knobs(self, name: str, **values: object) -> None:
        """Change knobs of a technique without a signal, for callers that change its artefact and announce both."""
        self._own.knobs[name] = checked(technique(name).knobs, self._own.knobs[name].replace(**values), name)

    @property
    def setting(self) -> Setting:
        """The setting with the techniques in use, with the same seed as the baseline."""
        setting = self.baseline_setting
        for one in self.techniques:
            if self.is_used(one.name):
                artefact = self._artefacts.fingerprint(one.name) or self.chosen_weights(one.name)
                setting = setting.with_technique(UsedTechnique(one.name, self._own.knobs[one.name], artefact))
        return setting

    @property
    def options_in_force(self) -> Values:
        """The sampler options of accelerated takes: those selected, as the techniques in use change them."""
        try:
            return options_in_force(self.setting)
        except SettingError:
            return self.options  # The reason is shown at the technique.

    @property
    def step_times(self) -> tuple[float, ...]:
        """The flow time at which each step of an accelerated take begins; empty if the options make no grid."""
        try:
            plan = resolve(self.loaded, self.setting, self._artefacts.of(self.setting))
        except PlainError:
            return option_times(self.options_in_force)[:-1]  # The reason is shown at the technique.
        return plan_times(plan)[:-1]

    @property
    def baseline_setting(self) -> Setting:
        return Setting(self.model_id, self.options, (), self.seed)

    def use_setting(self, take: Take | TakeSummary) -> str:
        """Load everything that made ``take`` into the selection, so that it can be run again with a change. Returns
        what will be different in any case, in sentences, or ``""``."""
        self.adopt_setting(take.setting, take.text, take.voice)
        return caution_on_repeating(take, self.voices, self.info.all_weights if self.info is not None else "")

    def adopt_setting(self, setting: Setting, text: str = "", voice: str = "") -> None:
        """Select everything that ``setting`` says, and ``text`` and ``voice`` if they are given."""
        if setting.model != self.model_id:
            raise SettingError(f"This was made with {setting.model}; load that model first (menu Model).")
        used = {one.name: setting.technique(one.name) for one in self.techniques}
        knobs = {name: checked(technique(name).knobs, one.knobs, name) for name, one in used.items() if one}
        self._own.options = self._options_like(setting.options)
        self._own.knobs |= knobs
        self.seed = setting.seed
        self.text = text or self.text
        self.voice = next((one for one in self.voices if one.id == voice), self.voice)
        for name, entry in used.items():
            self._own.used[name] = entry is not None
            if entry is not None:
                self._own.weights[name] = entry.artefact
        self.announce()

    @property
    def choices(self) -> Choices:
        """Everything that is selected but the model, for :meth:`put_choices`."""
        return {
            ("text",): self.text,
            ("voice",): self.voice,
            ("seed",): self.seed,
            ("seed_locked",): self.seed_locked,
            **{("option", name): value for name, value in self.options.items()},
            **{("used", name): on for name, on in self._own.used.items()},
            **{
                ("knob", one.name, knob.name): self._own.knobs[one.name][knob.name]
                for one in techniques()
                for knob in one.knobs
            },
            **{("weights", one.name): self._own.weights.get(one.name, "") for one in techniques()},
        }

    def put_choices(self, choices: Choices) -> None:
        """Select again what was chosen of the same model; everything else stays."""
        every = {**self.choices, **choices}
        self.text, self.seed, voice = str(every["text",]), int(str(every["seed",])), every["voice",]
        self.voice = voice if isinstance(voice, Voice) else None
        self.seed_locked = bool(every["seed_locked",])
        self._own.options = self._options_like({name: every["option", name] for name in self.options})
        for one in techniques():
            self._own.used[one.name] = bool(every["used", one.name])
            self._own.weights[one.name] = str(every["weights", one.name])
            values = {knob.name: every["knob", one.name, knob.name] for knob in one.knobs}
            self._own.knobs[one.name] = checked(one.knobs, values, one.name)
        self.announce()

    # --- Between sessions ---------------------------------------------------------------------------------------------
    def remembered(self) -> str:
        """The selection as JSON, for :meth:`recall`."""
        models = {name: one.remembered() for name, one in self._models.items()}
        # Chosen, whether or not it is loaded by now.
        models[self.model_id] = replace(models[self.model_id], folder=self.model_folder, variant=self.model_variant)
        return Remembered(
            self.text,
            tuple(self.own_voices),
            self.seed,
            self.seed_locked,
            self.model_id,
            self.device_wanted,
            {**self._remembered, **models},
            vocoders=self.vocoders,
        ).to_json()

    def recall(self, data: str, unfinished: str = "") -> None:
        """Select what was selected when :meth:`remembered` was called; what no longer exists is passed over, and so is
        a model whose loading was ``unfinished`` when the last session ended. Nothing is loaded yet."""
        saved = Remembered.from_json(data)
        if saved is None:
            return
        self.text = saved.text or self.text
        self.own_voices = list(saved.own_voices)
        self.seed = saved.seed if saved.seed is not None and 0 <= saved.seed <= SEED_LIMIT else self.seed
        self.seed_locked = saved.seed_locked
        self.device_wanted = saved.device or self.device_wanted
        self.vocoders = dict(saved.vocoders)
        self._models, self._remembered = {}, dict(saved.models)
        if not saved.models and saved.voice:
            # Earlier versions began with the first model, whichever was chosen at the end.
            self._remembered = {self.model_id: RememberedModel(voice=saved.voice)}
        if saved.has_common_options:
            self.passed_over.emit(
                "Options and techniques are each model’s own from now on. Those of the last session belonged to no "
                "model in particular, so all models begin with their defaults."
            )
        last = saved.models.get(saved.model, RememberedModel())
        self.not_recalled = None
        if any(one.id == saved.model for one in catalogue.MODELS):
            self.not_recalled = self._why_not_recalled(catalogue.entry(saved.model), last, unfinished)
            if self.not_recalled is None:
                self.model_id, self.model_folder, self.model_variant = saved.model, last.folder, last.variant
        elif saved.model:
            self.passed_over.emit(f"There is no model {saved.model} any more.")
        self._own = self._of(self.model_id)
        self.changed.emit()

    def _why_not_recalled(
        self, entry: catalogue.CatalogueEntry, last: RememberedModel, unfinished: str
    ) -> NotRecalled | None:
        """Why the model ``entry``, selected as ``last``, is not chosen again."""
        if not (Path(last.folder).exists() if last.folder else entry.available):
            why = f"{entry.title} was chosen last, but {last.folder or entry.folder} is gone"
            return NotRecalled(entry.id, why, is_there=False)
        if entry.id == unfinished and (entry.id, last.folder) != (self.model_id, ""):
            why = f"{entry.title} was being loaded when the last session broke off"
            return NotRecalled(entry.id, why, is_there=True)
        return None
