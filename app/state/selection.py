"""The selection: model, voice, text, sampler options, techniques and their knobs, with signals and without widgets.

:mod:`app.state.availability` says what can be done with it; :mod:`app.state.artefacts` keeps the techniques' artefacts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from PySide6.QtCore import QObject, Signal, Slot

from app.state.artefacts import Artefacts
from app.state.differences import caution_on_repeating
from app.state.remembering import Remembered
from app.state.step_times import option_times, plan_times
from engine.errors import PlainError, SettingError
from engine.models import catalogue
from engine.models.base import ModelInfo, TrainedWeights, Utterance, Voice
from engine.setting.knobs import Knob, Values, checked, defaults
from engine.setting.library import TakeSummary
from engine.setting.setting import Setting, UsedTechnique
from engine.setting.take import Take
from engine.techniques import applying_to, options_in_force, resolve, technique, techniques
from engine.techniques.base import Technique
from engine.techniques.trained import fitting

SEED_LIMIT = 2**31 - 1
Choices = Mapping[tuple[str, ...], object]
"""What the user chose, by what it is: ``("text",)``, ``("option", name)``, ``("knob", technique, knob)`` …"""


class Selection(QObject):
    """The user's choices, whether or not they can be used."""

    model_changed = Signal()
    """Another model was chosen, or it finished loading."""
    conditions_changed = Signal()
    """Something changed that artefacts depend on: model, sampler options, techniques or knobs. Those who keep artefacts
    follow; everybody else hears :attr:`changed` after that."""
    changed = Signal()
    """Voice, text, sampler options, techniques, knobs, seed or an artefact changed."""

    def __init__(self, artefacts: Artefacts, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._artefacts = artefacts
        self._announcing = False
        artefacts.changed.connect(self._artefact_changed)
        self.model_id = catalogue.MODELS[0].id
        self.model_folder = ""
        self.model_variant = ""
        self.device_wanted = "auto"
        self.candidate = ""
        """Id of another model that is shown, but was not loaded yet; ``""`` if there is none."""
        self.info: ModelInfo | None = None
        self.loading = False
        """Whether the chosen model is being loaded."""
        self.text = next(iter(catalogue.sentences()), "")
        self.own_voices: list[Voice] = []
        self.voice: Voice | None = next(iter(catalogue.voices()), None)
        self.options = self.entry.options_with()
        self.seed = 0
        self.seed_locked = True
        self._used = {one.name: index == 0 for index, one in enumerate(techniques())}
        self._knobs = {one.name: defaults(one.knobs) for one in techniques()}
        self._weights: dict[str, str] = {}
        """By technique: the fingerprint of the trained weights that were chosen among those that fit."""

    def announce(self, model: bool = False) -> None:
        """Say that conditions changed, and the chosen or loaded ``model`` with them."""
        self._announcing = True
        try:
            self.conditions_changed.emit()
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
    def choose_model(
        self,
        model: str,
        folder: str,
        variant: str,
        device: str,
        info: ModelInfo | None,
        options: Values,
        voice: Voice | None,
    ) -> None:
        """Select a model, loaded (``info``) or not yet, with those of ``options`` that it knows, and ``voice``
        if it has that."""
        self.model_id, self.model_folder, self.model_variant, self.device_wanted = model, folder, variant, device
        self.info = info
        self.candidate = ""
        self.options = self._options_like(options)
        if voice in self.voices:
            self.voice = voice
        if self.voice is None or self.voice not in self.voices:
            self.voice = next(iter(self.voices), None)
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
        self.announce(model=True)

    @property
    def entry(self) -> catalogue.CatalogueEntry:
        """The chosen model's entry in the catalogue."""
        return catalogue.entry(self.model_id)

    @property
    def ready(self) -> bool:
        """Whether the chosen model is loaded."""
        return self.info is not None and self.info.id == self.model_id

    def why_not_ready(self) -> str:
        """Why the model that is shown cannot be used yet, as a sentence, or ``""``."""
        if not self.candidate and self.loading and not self.ready:
            return f"{self.entry.title} is being loaded, which takes some seconds."
        if not self.candidate:
            return "" if self.ready else "The model is not loaded yet. Choose one under Model in Setup, and press Load."
        shown = catalogue.entry(self.candidate)
        todo = "press Load" if shown.available else "choose its folder or download it"
        return f"{shown.title} is chosen but not loaded: {todo}, or choose {self.entry.title} again."

    @property
    def loaded(self) -> ModelInfo:
        """The chosen model, for what needs it loaded. Raises :class:`SettingError` if it is not."""
        if self.info is None or not self.ready:
            raise SettingError("The model is not loaded yet.")
        return self.info

    @property
    def sampler_knobs(self) -> tuple[Knob, ...]:
        """The chosen model's own knobs."""
        return self.entry.options

    @property
    def sampler_defaults(self) -> Values:
        """The chosen model's own defaults, which may differ from those of its knobs."""
        return self.entry.options_with()

    @property
    def techniques(self) -> tuple[Technique, ...]:
        """The techniques that apply to the chosen model."""
        return applying_to(self.entry.family, self.sampler_knobs, self.entry.mel_steps)

    def _options_like(self, options: Mapping[str, object]) -> Values:
        """The chosen model's options, with those of ``options`` that it knows and permits."""
        known = {knob.name: options[knob.name] for knob in self.sampler_knobs if knob.name in options}
        try:
            return checked(self.sampler_knobs, {**self.sampler_defaults, **known}, self.entry.title)
        except SettingError:
            return self.sampler_defaults

    # --- Voice, text and seed -----------------------------------------------------------------------------------------
    @property
    def voices(self) -> tuple[Voice, ...]:
        """The chosen model's voices and the user's own."""
        return (*catalogue.voices(self.model_id, self.model_folder), *self.own_voices)

    @property
    def speaker(self) -> Voice:
        """The chosen voice, for what needs one. Raises :class:`SettingError` if there is none."""
        if self.voice is None:
            raise SettingError("Choose a voice first.")
        return self.voice

    @property
    def utterance(self) -> Utterance:
        """The text and the voice. Raises :class:`SettingError` if there is no voice."""
        return Utterance(self.text, self.speaker)

    def choose_voice(self, voice: str) -> None:
        """Speak in the voice with this id."""
        for one in self.voices:
            if one.id == voice:
                self.voice = one
                self.changed.emit()
                return
        raise SettingError(f"There is no voice {voice!r}; choose one of {', '.join(one.id for one in self.voices)}.")

    def add_voice(self, voice: Voice) -> None:
        """Add one of the user's own recordings, in place of an earlier one with the same id, and choose it."""
        self.own_voices = [one for one in self.own_voices if one.id != voice.id] + [voice]
        self.choose_voice(voice.id)

    def put_own_voices(self, voices: Iterable[Voice], chosen: Voice | None) -> None:
        """Have the recordings ``voices``, and choose one of all voices: the first if ``chosen`` is not there."""
        self.own_voices = list(voices)
        self.voice = chosen if chosen in self.voices else next(iter(self.voices), None)
        self.changed.emit()

    def set_text(self, text: str) -> None:
        """Speak ``text``."""
        if text != self.text:
            self.text = text
            self.changed.emit()

    def set_seed(self, seed: int) -> None:
        """Use ``seed`` for the noise of the next syntheses."""
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
        self.options = checked(self.sampler_knobs, self.options.replace(**{name: value}), self.entry.title)
        self.announce()

    def is_used(self, name: str) -> bool:
        """Whether the technique takes part in accelerated takes."""
        return self._used[name] and any(one.name == name for one in self.techniques)

    def switch(self, name: str, on: bool) -> None:
        """Switch a technique on or off for accelerated takes."""
        if self._used[name] != on:
            self._used[name] = on
            self.announce()

    def knobs(self, name: str) -> Values:
        """The knob values of a technique."""
        return self._knobs[name]

    def set_knob(self, name: str, knob: str, value: object) -> None:
        """Change one knob of a technique. One that an artefact follows is changed together with that."""
        source = self._artefacts.source(name)
        if source is not None and source.set_knob(knob, value):
            return
        if self._knobs[name][knob] == value:
            return
        self._knobs[name] = checked(technique(name).knobs, self._knobs[name].replace(**{knob: value}), name)
        self.announce()

    def fitting_weights(self, name: str) -> tuple[TrainedWeights, ...]:
        """The trained weights of the loaded model that a technique can be used with, the usual ones first."""
        return fitting(self.loaded, name, self._knobs[name]) if self.ready else ()

    def chosen_weights(self, name: str) -> str:
        """The fingerprint of those that were chosen; ``""`` for the usual ones, and where what was chosen does not fit
        any more."""
        chosen = self._weights.get(name, "")
        return chosen if any(one.fingerprint == chosen for one in self.fitting_weights(name)) else ""

    def choose_weights(self, name: str, fingerprint: str) -> None:
        """Use a technique with the weights that have this fingerprint; ``""`` for the usual ones."""
        if self._weights.get(name, "") != fingerprint:
            self._weights[name] = fingerprint
            self.changed.emit()

    def put_knobs(self, name: str, **values: object) -> None:
        """Change knobs of a technique without a signal, for callers that change its artefact and announce both."""
        self._knobs[name] = checked(technique(name).knobs, self._knobs[name].replace(**values), name)

    @property
    def setting(self) -> Setting:
        """The setting with the techniques in use, with the same seed as the baseline."""
        setting = self.baseline_setting
        for one in self.techniques:
            if self.is_used(one.name):
                artefact = self._artefacts.fingerprint(one.name) or self.chosen_weights(one.name)
                setting = setting.with_technique(UsedTechnique(one.name, self._knobs[one.name], artefact))
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
        """The setting without any technique."""
        return Setting(self.model_id, self.options, (), self.seed)

    def use_setting(self, take: Take | TakeSummary) -> str:
        """Load everything that made ``take`` into the selection, so that it can be run again with a change. Returns
        what will be different in any case, in sentences, or ``""``."""
        self.adopt_setting(take.setting, take.text, take.voice)
        return caution_on_repeating(take, self.voices)

    def adopt_setting(self, setting: Setting, text: str = "", voice: str = "") -> None:
        """Select everything that ``setting`` says, and ``text`` and ``voice`` if they are given."""
        if setting.model != self.model_id:
            raise SettingError(f"This was made with {setting.model}; load that model first (menu Model).")
        self.options = self._options_like(setting.options)
        self.seed = setting.seed
        self.text = text or self.text
        self.voice = next((one for one in self.voices if one.id == voice), self.voice)
        for one in self.techniques:
            entry = setting.technique(one.name)
            self._used[one.name] = entry is not None
            if entry is not None:
                self._knobs[one.name] = checked(one.knobs, entry.knobs, one.name)
                self._weights[one.name] = entry.artefact
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
            **{("used", name): on for name, on in self._used.items()},
            **{
                ("knob", one.name, knob.name): self._knobs[one.name][knob.name]
                for one in techniques()
                for knob in one.knobs
            },
            **{("weights", one.name): self._weights.get(one.name, "") for one in techniques()},
        }

    def put_choices(self, choices: Choices) -> None:
        """Select again what was chosen of the same model; everything else stays."""
        every = {**self.choices, **choices}
        self.text, self.seed, voice = str(every["text",]), int(str(every["seed",])), every["voice",]
        self.voice = voice if isinstance(voice, Voice) else None
        self.seed_locked = bool(every["seed_locked",])
        self.options = self._options_like({name: every["option", name] for name in self.options})
        for one in techniques():
            self._used[one.name] = bool(every["used", one.name])
            self._weights[one.name] = str(every["weights", one.name])
            values = {knob.name: every["knob", one.name, knob.name] for knob in one.knobs}
            self._knobs[one.name] = checked(one.knobs, values, one.name)
        self.announce()

    # --- Between sessions ---------------------------------------------------------------------------------------------
    def remembered(self) -> str:
        """The selection as JSON, for :meth:`recall`."""
        return Remembered(
            self.text,
            self.voice.id if self.voice else "",
            tuple(self.own_voices),
            self.seed,
            self.seed_locked,
            dict(self.options),
            {name: dict(values) for name, values in self._knobs.items()},
            self._used,
        ).to_json()

    def recall(self, data: str) -> None:
        """Select what was selected when :meth:`remembered` was called; what no longer exists is passed over."""
        saved = Remembered.from_json(data)
        if saved is None:
            return
        self.text = saved.text or self.text
        self.own_voices = list(saved.own_voices)
        self.voice = next((one for one in self.voices if one.id == saved.voice), self.voice)
        self.seed = saved.seed if saved.seed is not None and 0 <= saved.seed <= SEED_LIMIT else self.seed
        self.seed_locked = saved.seed_locked
        if saved.options is not None:
            self.options = self._options_like(saved.options)
        for one in techniques():
            values, used = (saved.knobs or {}).get(one.name), (saved.used or {}).get(one.name)
            with suppress(SettingError, TypeError):
                if isinstance(values, dict):
                    self._knobs[one.name] = checked(one.knobs, values, one.name)
                    self._used[one.name] = self._used[one.name] if used is None else bool(used)
        self.changed.emit()
