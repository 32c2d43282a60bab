"""The selection: model, voice, text, sampler options, techniques and their knobs, with signals and without widgets.
Text and seed are common to all models; everything else is per model."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Signal

from paretone.errors import PlainError, SettingError
from paretone.front_end import MOST_CHARACTERS
from paretone.front_end.pronunciations import in_force
from paretone.models import catalogue
from paretone.models.base import ModelInfo, TrainedWeights, Utterance, Voice
from paretone.models.declaration import Model
from paretone.sampling.schedules import first_halved, time_grid
from paretone.setting.knobs import Values, checked
from paretone.setting.library import TakeSummary
from paretone.setting.plan import flow_of
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Take
from paretone.techniques import applying_to, options_in_force, resolve, technique, techniques
from paretone.techniques.base import Technique
from paretone.techniques.trained import fitting, with_named_weights
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.differences import caution_on_repeating
from paretone_app.state.model_selection import ModelSelection, Remembered, RememberedModel


def option_times(options: Values) -> tuple[float, ...]:
    """Step times from ``options``; empty if they make no grid."""
    try:
        times = time_grid(int(options["steps"]), str(options["spacing"]), float(options["sway"]))
    except (KeyError, SettingError):
        return ()
    return tuple(float(time) for time in times)


SEED_LIMIT = 2**31 - 1
Choices = Mapping[tuple[str, ...], object]
"""The user's choices by key: ``("text",)``, ``("option", name)``, ``("knob", technique, knob)`` …"""


@dataclass(frozen=True)
class NotRecalled:
    """A model of the last session that could not be chosen again."""

    model: str
    why: str
    """A sentence without its full stop."""
    is_there: bool


class Selection(QObject):
    """The user's choices, usable or not."""

    model_changed = Signal()
    """Another model was chosen, or its loading finished."""
    conditions_changed = Signal()
    """A condition of artefacts changed: model, sampler options, techniques or knobs. For artefact stores only;
    :attr:`changed` follows for all others."""
    changed = Signal()
    """Voice, text, sampler options, techniques, knobs, seed or an artefact changed."""
    passed_over = Signal(str)
    """Remembered items that no longer exist, in sentences."""

    def __init__(self, artefacts: Artefacts, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._artefacts = artefacts
        self._announcing = False
        artefacts.changed.connect(lambda: None if self._announcing else self.changed.emit())
        self.model_id = catalogue.models()[0].id
        self.model_folder = ""
        self.model_variant = ""
        self.device_wanted = "auto"
        self.vocoders: dict[str, str] = {}
        """By model: folder of the vocoder it was loaded with, unless the default one."""
        self.candidate = ""
        """Id of another model, shown but not loaded yet; ``""`` if none."""
        self.info: ModelInfo | None = None
        self.elsewhere: Mapping[str, bool] | None = None
        """Models that the engine's machine has, if that is another one."""
        self._voices_there: dict[tuple[str, str], tuple[Voice, ...]] = {}
        """Voices that lie with a model's weights on that machine, by model and folder."""
        self.loading = False
        self.text = next(iter(catalogue.sentences()), "")
        self.one_per_line = False
        """Whether each line of the text makes a take."""
        self.own_voices: list[Voice] = []
        self.seed = 0
        self.seed_locked = True
        self.not_recalled: NotRecalled | None = None
        """The model of the last session, if another one is chosen instead."""
        self._remembered: dict[str, RememberedModel] = {}
        """Selections of earlier sessions, for models not yet chosen in this one."""
        self._models: dict[str, ModelSelection] = {}
        self._own = self._of(self.model_id)

    def announce(self, model: bool = False) -> None:
        """Announce changed conditions, with ``model`` also the chosen or loaded model."""
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

    def choose_model(self, model: str, folder: str, variant: str, device: str, info: ModelInfo | None) -> None:
        """Select a model, loaded (``info``) or not, and restore its selection."""
        if self.ready:
            self._own.artefacts = self._artefacts.in_use
        self.model_id, self.model_folder, self.model_variant, self.device_wanted = model, folder, variant, device
        self.info = info
        self.candidate = ""
        self._own = self._of(model)
        had, voices = self.voice, self.voices
        # Title or transcript of an own voice may have changed.
        self.voice = next((one for one in voices if had is not None and one.id == had.id), next(iter(voices), None))
        self.announce(model=True)

    def consider_model(self, model: str) -> None:
        """Show ``model``, to be loaded once the user confirms. Nothing can run meanwhile."""
        candidate = "" if model == self.model_id else model
        if candidate != self.candidate:
            self.candidate = candidate
            self.changed.emit()

    def set_info(self, info: ModelInfo) -> None:
        self.info = info
        self._own.folder, self._own.variant = self.model_folder, self.model_variant
        self.announce(model=True)

    def place(self, model: str) -> tuple[str, str]:
        """Folder and architecture to load ``model`` with: the last ones, if they still exist."""
        own = self._models.get(model) or self._remembered.get(model)
        folder, variant = (own.folder, own.variant) if own is not None else ("", "")
        if model == self.model_id:
            folder, variant = self.model_folder, self.model_variant
        there = not folder or self.elsewhere is not None or Path(folder).exists()
        return (folder, variant) if there else ("", "")

    def vocoder(self, model: str) -> str:
        """Folder of the vocoder to load ``model`` with, if it still exists; ``""`` for the default one."""
        folder = self.vocoders.get(model, "")
        return folder if self.elsewhere is not None or Path(folder).is_dir() else ""

    def is_installed(self, model: str) -> bool:
        """Whether the files of ``model`` exist, in the default folder or the user's."""
        entry = catalogue.entry(model)
        there = entry.available if self.elsewhere is None or entry.bundled else self.elsewhere.get(model, False)
        return bool(self.place(model)[0]) or there

    @property
    def entry(self) -> Model:
        return catalogue.entry(self.model_id)

    @property
    def ready(self) -> bool:
        return self.info is not None and self.info.id == self.model_id

    def why_not_ready(self) -> str:
        """Why the shown model cannot be used yet, as a sentence, or ``""``."""
        if not self.candidate and self.loading and not self.ready:
            return f"{self.entry.title} is being loaded, which takes some seconds."
        if not self.candidate:
            return "" if self.ready else "The model is not loaded yet. Choose one under Model in Setup, and press Load."
        shown = catalogue.entry(self.candidate)
        todo = "press Load" if self.is_installed(shown.id) else "choose its folder or download it"
        return f"{shown.title} is chosen but not loaded: {todo}, or choose {self.entry.title} again."

    @property
    def loaded(self) -> ModelInfo:
        """Info of the chosen model. Raises :class:`SettingError` if it is not loaded."""
        if self.info is None or not self.ready:
            raise SettingError("The model is not loaded yet.")
        return self.info

    @property
    def techniques(self) -> tuple[Technique, ...]:
        return applying_to(self.entry.family, self.entry.options, self.entry.mel_flow)

    def _options_like(self, options: Mapping[str, object]) -> Values:
        """The chosen model's options, updated with its own among ``options``."""
        known = {knob.name: options[knob.name] for knob in self.entry.options if knob.name in options}
        return checked(self.entry.options, {**self.entry.options_with(), **known}, self.entry.title)

    # --- Per model ----------------------------------------------------------------------------------------------------
    @property
    def options(self) -> Values:
        return self._own.options

    @property
    def voice(self) -> Voice | None:
        """The voice of the chosen model; ``None`` if it has none."""
        return self._own.voice

    @voice.setter
    def voice(self, voice: Voice | None) -> None:
        self._own.voice = voice

    def _of(self, model: str) -> ModelSelection:
        """The selection of ``model``, created or recalled on first use."""
        if model not in self._models:
            entry, voice = catalogue.entry(model), next(iter(self.voices), None)
            own = self._models[model] = ModelSelection(entry.options_with(), voice)
            saved = self._remembered.pop(model, None)
            if saved is not None and (gone := own.recall(saved, entry, self.voices)):
                self.passed_over.emit(f"Not as in the last session: {'; '.join(gone)}.")
            if entry.bundled:
                own.options = own.options.replace(pronunciations=in_force())  # Words may have been taught elsewhere.
        return self._models[model]

    # --- Voice, text and seed -----------------------------------------------------------------------------------------
    @property
    def voices(self) -> tuple[Voice, ...]:
        brought = self.voices_of(self.model_id, self.model_folder)
        return brought if self.entry.voices.named is not None else (*brought, *self.own_voices)

    def voices_of(self, model: str, folder: str) -> tuple[Voice, ...]:
        """The voices that come with ``model``, whose files lie in ``folder`` if given."""
        if self.elsewhere is not None and catalogue.entry(model).voices.in_folder:
            return self._voices_there.get((model, folder), ())
        return catalogue.voices(model, folder)

    def voice_problem(self, audio: str, transcript: str) -> str:
        """Why the chosen model cannot speak in the voice of a recording, or ``""``; a host itself checks its models."""
        if self.elsewhere is not None and not self.entry.bundled:
            return ""
        return catalogue.voice_problem(Path(audio), self.model_id, self.model_folder, transcript)

    def note_voices(self, model: str, folder: str, voices: Iterable[Voice]) -> None:
        """Offer the voices that lie with a model's weights on the engine's machine."""
        self._voices_there[model, folder] = tuple(voices)
        if self.voice is None and (model, folder) == (self.model_id, self.model_folder):
            self.voice = next(iter(self.voices), None)
        self.changed.emit()

    @property
    def speaker(self) -> Voice:
        """The chosen voice. Raises :class:`SettingError` if there is none."""
        if self.voice is None:
            raise SettingError("Choose a voice first.")
        return self.voice

    @property
    def utterance(self) -> Utterance:
        return Utterance(self.text, self.speaker)

    def choose_voice(self, voice: str) -> None:
        known = {one.id: one for one in self.voices}
        if voice not in known:
            raise SettingError(f"There is no voice {voice!r}; choose one of {', '.join(known)}.")
        self.voice = known[voice]
        self.changed.emit()

    def put_own_voices(self, voices: Iterable[Voice], chosen: Voice | None) -> None:
        """Replace the own recordings by ``voices`` and choose a voice: the first of all if ``chosen`` is missing."""
        self.own_voices = list(voices)
        self.voice = chosen if chosen in self.voices else next(iter(self.voices), None)
        self.changed.emit()

    def set_text(self, text: str) -> None:
        if text != self.text:
            self.text = text
            self.changed.emit()

    def set_one_per_line(self, on: bool) -> None:
        self.one_per_line = on
        self.changed.emit()

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of each take: the whole text, its lines, or the parts of a long text."""
        lines = tuple(one.strip() for one in self.text.splitlines() if one.strip())
        if self.one_per_line and len(lines) > 1:
            return lines
        if len(self.text) <= MOST_CHARACTERS:
            return (self.text,)
        from paretone.front_end.speakable import parts  # Slow to import.

        return parts(self.text)

    def set_seed(self, seed: int) -> None:
        if seed != self.seed:
            self.seed = seed
            self.changed.emit()

    def set_seed_locked(self, locked: bool) -> None:
        """Keep the seed, or draw a new one before each baseline."""
        self.seed_locked = locked

    # --- Options and techniques ---------------------------------------------------------------------------------------
    def set_option(self, name: str, value: object) -> None:
        """Change a sampler option; stores then look for an artefact that fits."""
        if self.options.get(name) == value:
            return
        self._own.options = checked(self.entry.options, self.options.replace(**{name: value}), self.entry.title)
        self.announce()

    def take_over_lexicon(self) -> None:
        """Have all bundled models say the words of the user's lexicon."""
        for model, own in self._models.items():
            if catalogue.entry(model).bundled:
                own.options = own.options.replace(pronunciations=in_force())
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
        """Change a knob of a technique. If an artefact is tied to it, its store changes both."""
        source = self._artefacts.source(name)
        if source is not None and source.set_knob(knob, value):
            return
        if self._own.knobs[name][knob] == value:
            return
        self._own.knobs[name] = checked(technique(name).knobs, self._own.knobs[name].replace(**{knob: value}), name)
        self.announce()

    def fitting_weights(self, name: str) -> tuple[TrainedWeights, ...]:
        """The trained weights of the loaded model that fit a technique, default first."""
        return fitting(self.loaded, name, self._own.knobs[name]) if self.ready else ()

    def chosen_weights(self, name: str) -> str:
        """Fingerprint of the chosen weights; ``""`` for the default ones, also if the chosen ones no longer fit."""
        chosen = self._own.weights.get(name, "")
        return chosen if any(one.fingerprint == chosen for one in self.fitting_weights(name)) else ""

    def choose_weights(self, name: str, fingerprint: str) -> None:
        """Choose a technique's weights by fingerprint; ``""`` for the default ones."""
        if self._own.weights.get(name, "") != fingerprint:
            self._own.weights[name] = fingerprint
            self.changed.emit()

    def put_knobs(self, name: str, **values: object) -> None:
        """Change knobs of a technique silently, for callers that announce a change of its artefact."""
        self._own.knobs[name] = checked(technique(name).knobs, self._own.knobs[name].replace(**values), name)

    @property
    def setting(self) -> Setting:
        """The setting with the techniques in use and the baseline's seed."""
        setting = self.baseline_setting
        for one in self.techniques:
            if self.is_used(one.name):
                artefact = self._artefacts.fingerprint(one.name) or self.chosen_weights(one.name)
                setting = setting.with_technique(UsedTechnique(one.name, self._own.knobs[one.name], artefact))
        return setting

    @property
    def options_in_force(self) -> Values:
        """The sampler options of accelerated takes, as modified by the techniques in use."""
        try:
            return options_in_force(self.setting)
        except SettingError:
            return self.options  # The reason is shown at the technique.

    @property
    def step_times(self) -> tuple[float, ...]:
        """Flow time at the start of each step of an accelerated take; empty if the options make no grid."""
        try:
            plan = flow_of(resolve(self.loaded, self.setting, self._artefacts.of(self.setting)))
        except PlainError:
            return option_times(self.options_in_force)[:-1]  # The reason is shown at the technique.
        times = option_times(plan.options) if plan.times is None else plan.times
        halved = plan.halves_first and times
        return tuple(first_halved(np.array(times, np.float32)).tolist() if halved else times)[:-1]

    @property
    def baseline_setting(self) -> Setting:
        return Setting(self.model_id, self.options, (), self.seed)

    def use_setting(self, take: Take | TakeSummary) -> str:
        """Select everything that made ``take``; returns what will differ in any case, in sentences, or ``""``."""
        self.adopt_setting(take.setting, take.text, take.voice)
        return caution_on_repeating(take, self.voices, self.info.all_weights if self.info is not None else "")

    def adopt_setting(self, setting: Setting, text: str = "", voice: str = "") -> None:
        """Select everything in ``setting``, and ``text`` and ``voice`` if given."""
        if setting.model != self.model_id:
            raise SettingError(f"This was made with {setting.model}; load that model first (menu Model).")
        with suppress(SettingError):  # Where its weights are gone, others that fit are used.
            setting = with_named_weights(setting, self.loaded) if self.ready else setting
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
        """The whole selection except the model, for :meth:`put_choices`."""
        return {
            ("text",): self.text,
            ("voice",): self.voice,
            ("seed",): self.seed,
            ("seed_locked",): self.seed_locked,
            ("one_per_line",): self.one_per_line,
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
        """Restore choices made for the same model; keep everything else."""
        every = {**self.choices, **choices}
        self.text, self.seed, voice = str(every["text",]), int(str(every["seed",])), every["voice",]
        self.voice = voice if isinstance(voice, Voice) else None
        self.seed_locked, self.one_per_line = bool(every["seed_locked",]), bool(every["one_per_line",])
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
        # The chosen model, loaded or not.
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
        """Restore the result of :meth:`remembered`, except a model whose loading was ``unfinished``. Loads nothing."""
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
            # Earlier versions always started with the first model.
            self._remembered = {self.model_id: RememberedModel(voice=saved.voice)}
        if saved.has_common_options:
            self.passed_over.emit(
                "Options and techniques are each model’s own from now on. Those of the last session belonged to no "
                "model in particular, so all models begin with their defaults."
            )
        last, self.not_recalled = saved.models.get(saved.model, RememberedModel()), None
        if any(one.id == saved.model for one in catalogue.models()):
            self.not_recalled = self._why_not_recalled(catalogue.entry(saved.model), last, unfinished)
            if self.not_recalled is None:
                self.model_id, self.model_folder, self.model_variant = saved.model, last.folder, last.variant
        elif saved.model:
            self.passed_over.emit(f"There is no model {saved.model} any more; {self.entry.title} is loaded instead.")
        self._own = self._of(self.model_id)
        self.changed.emit()

    def _why_not_recalled(self, entry: Model, last: RememberedModel, unfinished: str) -> NotRecalled | None:
        """Why the model ``entry`` with the selection ``last`` is not chosen again; ``None`` if it can be."""
        there = Path(last.folder).exists() if last.folder else entry.available
        if not there and self.elsewhere is None:  # A host says itself what it lacks.
            why = f"{entry.title} was chosen last, but {last.folder or entry.folder} is gone"
            return NotRecalled(entry.id, why, is_there=False)
        if entry.id == unfinished and (entry.id, last.folder) != (self.model_id, ""):
            why = f"{entry.title} was being loaded when the last session broke off"
            return NotRecalled(entry.id, why, is_there=True)
        return None
