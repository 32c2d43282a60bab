"""Availability of actions for the selection, with sentences that say why not and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.state.artefacts import Artefacts
from app.state.selection import Selection
from engine.errors import PlainError, SettingError
from engine.models import catalogue
from engine.models.cosyvoice2.config import INSTRUCT, INSTRUCTION, MODE
from engine.techniques import conflict, problem, remarks, resolve


def require(problem: str) -> None:
    """Raise :class:`SettingError` with ``problem``, unless that is empty."""
    if problem:
        raise SettingError(problem)


@dataclass(frozen=True)
class TrainingOffer:
    """A training that would make a technique usable as it is engaged."""

    knobs: Mapping[str, object]
    """Knobs of the training."""
    text: str
    """Text of the button."""
    tip: str
    estimate: str
    """Estimated time, as a sentence."""


class Availability:
    """Reads the selection and changes nothing. Features of techniques add what only they know."""

    def __init__(self, selection: Selection, artefacts: Artefacts) -> None:
        self._selection = selection
        self._artefacts = artefacts
        self._reasons: dict[str, Callable[[], str]] = {INSTRUCTION.name: self._why_no_instruction}
        self._offers: dict[str, Callable[[], TrainingOffer | None]] = {}

    def explain(self, option: str, reason: Callable[[], str]) -> None:
        """``reason`` says why a sampler option has no effect as things are selected, or ``""``."""
        self._reasons[option] = reason

    def why_no_effect(self, option: str) -> str:
        """Why a sampler option has no effect as things are selected, as a sentence, or ``""``."""
        return self._reasons[option]() if option in self._reasons and option in self._selection.options else ""

    def offer_training(self, technique: str, offer: Callable[[], TrainingOffer | None]) -> None:
        """``offer`` gives what could be trained for ``technique``, or ``None``."""
        self._offers[technique] = offer

    def training_offer(self, technique: str) -> TrainingOffer | None:
        """The training that would make ``technique`` usable as it is engaged."""
        return self._offers[technique]() if technique in self._offers else None

    # --- What can be run ----------------------------------------------------------------------------------------------
    def why_not_synthesise(self) -> str:
        """Why no baseline can be synthesised now, as a sentence, or ``""``."""
        if reason := self._selection.why_not_ready():
            return reason
        if self._selection.voice is None:
            return self.why_no_voice()
        if not self._selection.text.strip():
            return "Type a sentence to speak first."
        return ""

    def why_no_voice(self) -> str:
        """Advice if there is no voice to choose from, as a sentence."""
        try:
            catalogue.voice("", self._selection.model_id, self._selection.model_folder)
        except SettingError as error:
            return str(error)
        return "Choose a voice first."

    def why_not_accelerate(self) -> str:
        """Why no accelerated take can be synthesised now, as a sentence, or ``""``."""
        setting, info = self._selection.setting, self._selection.info
        if not setting.techniques:
            return "Engage at least one technique first."
        return (
            self.why_not_synthesise()
            or conflict(setting)
            or self._why_not_prepared()
            or (problem(info, setting, self._artefacts.of(setting)) if info is not None else "")
            or ""
        )

    def _why_not_prepared(self) -> str:
        """Why an engaged technique lacks its artefact, as a sentence, or ``""``."""
        problems = (self._artefacts.problem(one.technique) for one in self._selection.setting.techniques)
        return next(filter(None, problems), "")

    # --- Techniques ---------------------------------------------------------------------------------------------------
    def technique_problem(self, name: str) -> str:
        """Why the technique cannot be used with this selection, apart from other techniques, as a sentence, or
        ``""``."""
        chosen = self._selection
        if not chosen.is_engaged(name):
            return ""
        setting = chosen.setting
        reason = conflict(setting, name)
        if reason or self._artefacts.source(name) is not None:
            return reason or self._artefacts.problem(name)
        entry = setting.engaged(name)
        if chosen.info is None or entry is None:
            return ""
        # With nothing else engaged, so that each technique gives only its own reasons.
        return problem(chosen.info, chosen.baseline_setting.with_technique(entry)) or ""

    def technique_remarks(self, name: str) -> tuple[str, ...]:
        """Remarks on surprising effects of the technique's knobs, in sentences."""
        chosen = self._selection
        return remarks(chosen.setting).get(name, ()) if chosen.is_engaged(name) else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that a take would have, other than its techniques' remarks."""
        chosen = self._selection
        if not chosen.ready:
            return ()
        said = {sentence for one in chosen.techniques for sentence in self.technique_remarks(one.name)}
        for setting in (chosen.setting, chosen.baseline_setting):
            try:
                notes = resolve(chosen.loaded, setting, self._artefacts.of(setting)).notes
            except PlainError:
                continue
            return tuple(one for one in notes if one not in said)
        return ()

    # --- Options ------------------------------------------------------------------------------------------------------
    def _why_no_instruction(self) -> str:
        """Why an instruction how to speak would not be followed, as a sentence, or ``""``."""
        if self._selection.options.get(MODE.name, INSTRUCT) == INSTRUCT:
            return ""
        title = MODE.titles[MODE.values.index(INSTRUCT)]
        return f"Only for the mode “{title}”; choose that first."
