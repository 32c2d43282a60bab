"""Availability of actions for the selection, with sentences that give the reason and the remedy."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from paretone.checks.beforehand import prompt_faults
from paretone.errors import PlainError, SettingError
from paretone.models import catalogue
from paretone.models.base import ModelInfo
from paretone.models.voices import is_own
from paretone.setting.plan import NotPrepared
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import conflict, problem, remarks, resolve, technique
from paretone.techniques.resolving import known
from paretone.training.forms import TrainingOffer, lasting, training_form
from paretone_app.numbers import localised
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.jobs import Job, Jobs
from paretone_app.state.selection import Selection


def require(problem: str) -> None:
    """Raise :class:`SettingError` with ``problem`` unless it is empty."""
    if problem:
        raise SettingError(problem)


class Fit(Enum):
    """Whether a technique applies to the selection."""

    APPLIES = "applies"
    UNPREPARED = "unprepared"
    EXCLUDED = "excluded"
    REFUSED = "refused"
    IMPOSSIBLE = "impossible"
    """Not to this model or not on this device."""


@dataclass(frozen=True)
class Applicability:
    """Whether a technique applies, used or not, with the reason if it does not."""

    fit: Fit
    why: str = ""
    others: tuple[str, ...] = ()
    """Titles of techniques in use that exclude it."""


class Availability:
    """Read-only view of the selection. Features of techniques add their own reasons."""

    def __init__(self, selection: Selection, artefacts: Artefacts, jobs: Jobs) -> None:
        self._selection, self._artefacts, self._jobs = selection, artefacts, jobs
        self._reasons: dict[str, Callable[[], str]] = {}
        self._asked: dict[str, tuple[ModelInfo, Setting, UsedTechnique]] = {}
        """Arguments of the last answer on each technique: typing text repeats the question."""
        self._found: dict[str, Applicability] = {}

    def explain(self, option: str, reason: Callable[[], str]) -> None:
        """Register ``reason``: why a sampler option currently has no effect, or ``""``."""
        self._reasons[option] = reason

    def why_no_effect(self, option: str) -> str:
        """Why a sampler option currently has no effect, as a sentence, or ``""``."""
        chosen = self._selection
        if option not in chosen.options:
            return ""
        return chosen.entry.without_effect(option, chosen.options) or self._reasons.get(option, lambda: "")()

    def training_offer(self, name: str) -> TrainingOffer | None:
        """The training that would make the technique usable with its current knobs."""
        form, info = training_form(name), self._selection.info
        if form is None or info is None or form.why_not(info) or not self.technique_problem(name):
            return None
        offer = form.offer(info, self._selection.knobs(name))
        if offer is None:
            return None
        estimate = f"This takes about {lasting(form.minutes(info))} of one CPU core, far less on a GPU."
        return replace(offer, text=localised(offer.text), estimate=localised(estimate))

    # --- Synthesis ----------------------------------------------------------------------------------------------------
    def why_not_synthesise(self) -> str:
        """Why no baseline can be synthesised now, as a sentence, or ``""``."""
        return self._selection.why_not_ready() or self._why_nothing_to_say()

    def why_not_speak(self) -> str:
        """Why no baseline can be asked for now, as a sentence, or ``""``: it may wait for its model."""
        waits = self._selection.loading and not self._selection.candidate
        return ("" if waits else self._selection.why_not_ready()) or self._why_nothing_to_say()

    def _why_nothing_to_say(self) -> str:
        if self._selection.voice is None or (reason := self.why_not_in_voice()):
            return reason or self.why_no_voice()
        if not self._selection.text.strip():
            return "Type a sentence to speak first."
        return ""

    def why_not_in_voice(self) -> str:
        """Why the model cannot speak in the chosen recording, as a sentence, or ``""``."""
        chosen, voice = self._selection, self._selection.voice
        if voice is None or not is_own(voice.id):
            return ""
        return chosen.voice_problem(voice.audio, voice.transcript)

    def why_no_voice(self) -> str:
        chosen = self._selection.entry
        if self._selection.elsewhere is not None and (latents := chosen.voices.latents):
            return (
                f"{chosen.title} has no voice on the host: put a recording and its latents (name.wav, name{latents}) "
                f"into {catalogue.VOICES} in the model's folder there and load the model again, or choose a recording."
            )
        try:
            catalogue.voice("", self._selection.model_id, self._selection.model_folder)
        except SettingError as error:
            return str(error)
        return "Choose a voice first."

    def why_not_accelerate(self) -> str:
        """Why no accelerated take can be synthesised now, as a sentence, or ``""``."""
        setting, info = self._selection.setting, self._selection.info
        if not setting.techniques:
            return "Enable a technique first."
        if reason := self.why_not_synthesise() or conflict(setting):
            return reason
        awaited = self.awaited()
        if awaited is not None:
            setting = setting.without(awaited[1].technique)
        problems = (self._artefacts.problem(one.technique) for one in setting.techniques)
        unprepared = next(filter(None, problems), "")
        return unprepared or (problem(info, setting, self._artefacts.of(setting)) if info is not None else "") or ""

    def awaited(self) -> tuple[Job, UsedTechnique] | None:
        """The job of the queue that prepares the artefact of a technique in use, and the technique's entry."""
        return self._artefacts.awaited(self._selection.setting, self._jobs.all)

    def why_not_export(self) -> str:
        """Why the selection cannot be exported as a profile now, as a sentence, or ``""``."""
        return self.why_not_accelerate() if self._selection.setting.techniques else self.why_not_synthesise()

    # --- Techniques ---------------------------------------------------------------------------------------------------
    def technique_problem(self, name: str) -> str:
        """Why the technique cannot be used with the selection, other techniques aside, as a sentence, or ``""``."""
        chosen = self._selection
        if not chosen.is_used(name):
            return ""
        setting = chosen.setting
        reason = conflict(setting, name)
        if reason or self._artefacts.source(name) is not None:
            return reason or self._artefacts.problem(name)
        entry = setting.technique(name)
        if chosen.info is None or entry is None:
            return ""
        # Without other techniques, so that each gives only its own reasons.
        return problem(chosen.info, chosen.baseline_setting.with_technique(entry)) or ""

    def applicability(self, name: str) -> Applicability:
        """Whether a technique, used or not, applies to the model, the options and the techniques in use."""
        chosen = self._selection
        info = chosen.info if chosen.info is not None and chosen.ready else known(chosen.model_id)
        prepared = self._artefacts.fingerprint(name) or chosen.chosen_weights(name)
        entry = UsedTechnique(name, chosen.knobs(name), prepared)
        asked = info, replace(chosen.setting, seed=0), entry
        if self._asked.get(name) != asked:
            self._asked[name], self._found[name] = asked, self._applies(name, *asked)
        found, source = self._found[name], self._artefacts.source(name)
        if found.fit is not Fit.APPLIES or source is None:
            return found
        if chosen.is_used(name):
            reason = source.problem()
        elif source.artefact is None:
            reason = "Switch it on, then calibrate."
        else:
            fits = source.fits(source.artefact)
            reason = "" if fits else "What was calibrated does not fit the options; calibrate again."
        return Applicability(Fit.UNPREPARED if reason else Fit.APPLIES, reason)

    def _applies(self, name: str, info: ModelInfo, setting: Setting, entry: UsedTechnique) -> Applicability:
        """As :meth:`applicability`, without artefacts from stores."""
        if reason := technique(name).not_offered(info):
            return Applicability(Fit.IMPOSSIBLE, reason)
        alone, together = setting.baseline.with_technique(entry), setting.with_technique(entry)
        if reason := conflict(alone, name):
            return Applicability(Fit.REFUSED, reason)
        if reason := conflict(together, name):
            others = (one for one in together.techniques if one.technique != name)
            excluding = (one.technique for one in others if conflict(alone.with_technique(one), name))
            return Applicability(Fit.EXCLUDED, reason, tuple(technique(one).title for one in excluding))
        if not info.fingerprint or self._artefacts.source(name) is not None:
            return Applicability(Fit.APPLIES)
        try:
            resolve(info, alone)
        except NotPrepared as error:
            return Applicability(Fit.UNPREPARED, str(error))
        except PlainError as error:
            return Applicability(Fit.REFUSED, str(error))
        return Applicability(Fit.APPLIES)

    def technique_remarks(self, name: str) -> tuple[str, ...]:
        chosen = self._selection
        return remarks(chosen.setting).get(name, ()) if chosen.is_used(name) else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that a take would get, except its techniques' remarks."""
        chosen = self._selection
        if not chosen.ready:
            return ()
        prompt = () if chosen.voice is None else prompt_faults(chosen.voice)
        said = {sentence for one in chosen.techniques for sentence in self.technique_remarks(one.name)}
        for setting in (chosen.setting, chosen.baseline_setting):
            try:
                notes = resolve(chosen.loaded, setting, self._artefacts.of(setting)).notes
            except PlainError:
                continue
            return (*(one for one in notes if one not in said), *prompt)
        return prompt
