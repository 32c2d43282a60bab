"""Cost and gain: operations and time of a setting on this machine, and measured gains of techniques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from paretone.errors import PlainError
from paretone.sampling.operations import OperationCounts
from paretone.session.events import Event, ModelLoaded, TakeReady
from paretone.setting.library import TakeSummary
from paretone.setting.plan import FlowPlan, Plan
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements
from paretone.studies.gains import Gain, Place, best_known, of_study, of_takes
from paretone.techniques import resolve
from paretone_app.numbers import rough_duration
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.machine import Machine
from paretone_app.state.selection import Selection

if TYPE_CHECKING:
    from paretone.studies.results import Results


LONG_SECONDS = 300.0
"""Ask before a synthesis expected to take longer."""
LETTERS_A_SECOND = 15.0
"""Characters of English text per second of speech."""


def _letters(text: str) -> float:
    """Characters of ``text``; shorter texts take as long as a second of speech."""
    return max(LETTERS_A_SECOND, len(text.strip()))


class Cost(QObject):
    """Cost of the chosen model; unknown before its first synthesis."""

    changed = Signal()
    """Operations were counted, or discarded with their model."""

    def __init__(self, selection: Selection, artefacts: Artefacts, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection, self._artefacts = selection, artefacts
        self.operations: OperationCounts | None = None
        self.measured: dict[Setting, tuple[Measurements, float]] = {}
        """Last measurements per setting (seed ignored), with the number of characters spoken."""
        self._places: dict[str, tuple[str, str]] = {}
        """By model: weights and device of its last measurements."""

    def follow(self, event: Event) -> None:
        """Record counted operations and the time of a take. Other weights or another device discard measurements."""
        if isinstance(event, ModelLoaded):
            info = event.info
            place = info.all_weights, info.device
            if self._places.setdefault(info.id, place) != place:
                self._places[info.id] = place
                self.measured = {one: known for one, known in self.measured.items() if one.model != info.id}
        if not isinstance(event, TakeReady):
            return
        take = event.take
        if take.measurements.seconds and take.text.strip() and not take.unfinished:
            setting = replace(take.setting, seed=0)
            self.measured.pop(setting, None)  # Newest last.
            self.measured[setting] = take.measurements, _letters(take.text)
            while len(self.measured) > 500:  # A day of takes makes thousands.
                del self.measured[next(iter(self.measured))]
        if event.operations is not None and take.setting.model == self._selection.model_id:
            self.set_operations(event.operations)

    def set_operations(self, operations: OperationCounts | None) -> None:
        self.operations = operations
        self.changed.emit()

    @property
    def plan(self) -> Plan | None:
        """Plan of the accelerated setting for the loaded model; ``None`` if the setting is not usable."""
        info, setting = self._selection.info, self._selection.setting
        if info is None or any(self._artefacts.problem(one.technique) for one in setting.techniques):
            return None
        try:
            return resolve(info, setting, self._artefacts.of(setting))
        except PlainError:
            return None

    def expected_seconds(self, setting: Setting, text: str | None = None) -> float | None:
        """Expected seconds for ``text``, by default the selected one; ``None`` before the model's first take."""
        letters = _letters(self._selection.text if text is None else text)
        same = self.measured.get(replace(setting, seed=0))
        if same is not None:
            return same[0].seconds / same[1] * letters
        plain = self.measured.get(replace(setting, seed=0, techniques=()))
        if plain is not None:
            measured, spoken = plain
            ratio = self.ops_ratio if setting == self._selection.setting else None
            saved = measured.backbone_seconds * (1.0 - (1.0 if ratio is None else ratio))
            return (measured.seconds - saved) / spoken * letters
        others = (one for known, one in self.measured.items() if known.model == setting.model)
        return max((measured.seconds / spoken * letters for measured, spoken in others), default=None)

    def why_ask(self, setting: Setting) -> str:
        """What to tell the user before a long synthesis of the selected text, as a sentence, or ``""``."""
        seconds, speech = self.expected_seconds(setting), len(self._selection.text.strip()) / LETTERS_A_SECOND
        if seconds is None and speech > LONG_SECONDS:
            return (
                f"The whole text makes about {rough_duration(speech)} of speech. "
                "How long that takes on this machine is not known before a first take."
            )
        if seconds is not None and seconds > LONG_SECONDS:
            return f"Speaking the whole text takes about {rough_duration(seconds)} on this machine."
        return ""

    @property
    def ops_ratio(self) -> float | None:
        """Share of the baseline's operations needed by the accelerated setting; ``None`` if unknown."""
        plan, operations = self.plan, self.operations
        return plan.ops_ratio(operations) if isinstance(plan, FlowPlan) and operations is not None else None


class Gains(QObject):
    """Gains of techniques, counted again on request after a change."""

    changed = Signal()

    def __init__(self, selection: Selection, machine: Machine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection, self._machine = selection, machine
        self._takes: Sequence[TakeSummary] = ()
        self._studies: dict[Path, Results] = {}
        self._counted: tuple[Place, tuple[Gain, ...]] | None = None

    def set_takes(self, takes: Sequence[TakeSummary]) -> None:
        self._takes = takes[:2000]  # The newest, to stay responsive.
        self._changed()

    def set_studies(self, studies: dict[Path, Results]) -> None:
        """Count these studies, by folder, instead of the former ones."""
        if studies != self._studies:
            self._studies = studies
            self._changed()

    def of(self, name: str) -> Gain | None:
        """The gain of a technique, with the selected knobs if they were measured; ``None`` if not measured here."""
        info = self._selection.info
        if info is None or not self._machine.title:
            return None
        place = Place(info.id, info.all_weights, info.device, info.device_type, self._machine.title)
        if self._counted is None or self._counted[0] != place:
            studied = (one for results in self._studies.values() for one in of_study(results, place))
            self._counted = place, (*of_takes(self._takes, place), *studied)
        return best_known(self._counted[1], UsedTechnique(name, self._selection.knobs(name)))

    def _changed(self) -> None:
        self._counted = None
        self.changed.emit()
