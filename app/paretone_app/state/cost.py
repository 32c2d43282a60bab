"""Cost and gain: operations and time of a setting on this machine, and the gains of techniques as measured here."""

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
"""A synthesis of which more is expected is asked about before it begins."""
LETTERS_A_SECOND = 15.0
"""Letters and spaces of English text per second of speech."""
MOST_SETTINGS = 500
"""How many settings' last measurements are kept: a day of takes makes thousands."""


class Cost(QObject):
    """Cost of the chosen model; unknown before something was synthesised with it."""

    changed = Signal()
    """Operations were counted, or forgotten with their model."""

    def __init__(self, selection: Selection, artefacts: Artefacts, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._artefacts = artefacts
        self.operations: OperationCounts | None = None
        self._measured: dict[Setting, tuple[Measurements, int]] = {}
        """The last measurements under each setting, whatever its seed, and the number of letters that were spoken."""
        self._places: dict[str, tuple[str, str]] = {}
        """By model: the weights and the device of its last measurements."""

    def follow(self, event: Event) -> None:
        """Take in counted operations, and how long a take took; a model that is loaded with other weights or on another
        device takes another time."""
        if isinstance(event, ModelLoaded):
            info = event.info
            place = info.all_weights, info.device
            if self._places.setdefault(info.id, place) != place:
                self._places[info.id] = place
                self._measured = {one: known for one, known in self._measured.items() if one.model != info.id}
        if not isinstance(event, TakeReady):
            return
        take = event.take
        if take.measurements.seconds and take.text.strip() and not take.unfinished:
            setting = replace(take.setting, seed=0)
            self._measured.pop(setting, None)  # The newest are last.
            self._measured[setting] = take.measurements, len(take.text.strip())
            while len(self._measured) > MOST_SETTINGS:
                del self._measured[next(iter(self._measured))]
        if event.operations is not None:
            self.set_operations(event.operations)

    def set_operations(self, operations: OperationCounts | None) -> None:
        self.operations = operations
        self.changed.emit()

    @property
    def plan(self) -> Plan | None:
        """Plan of the accelerated setting for the loaded model; ``None`` if it cannot be used."""
        info, setting = self._selection.info, self._selection.setting
        if info is None or any(self._artefacts.problem(one.technique) for one in setting.techniques):
            return None
        try:
            return resolve(info, setting, self._artefacts.of(setting))
        except PlainError:
            return None

    def expected_seconds(self, setting: Setting) -> float | None:
        """Seconds that synthesising the whole selected text under ``setting`` will take, from takes of this session;
        ``None`` before there was one of the model."""
        letters = len(self._selection.text.strip())
        same = self._measured.get(replace(setting, seed=0))
        if same is not None:
            return same[0].seconds / same[1] * letters
        plain = self._measured.get(replace(setting, seed=0, techniques=()))
        if plain is not None:
            measured, spoken = plain
            ratio = self.ops_ratio if setting == self._selection.setting else None
            saved = measured.backbone_seconds * (1.0 - (1.0 if ratio is None else ratio))
            return (measured.seconds - saved) / spoken * letters
        others = (one for known, one in self._measured.items() if known.model == setting.model)
        return max((measured.seconds / spoken * letters for measured, spoken in others), default=None)

    def why_ask(self, setting: Setting) -> str:
        """What the user should know before synthesising the selected text under ``setting`` begins, if that takes
        long, as a sentence, or ``""``."""
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
        """Share of the baseline's operations that the accelerated setting needs; ``None`` while it is unknown."""
        plan, operations = self.plan, self.operations
        return plan.ops_ratio(operations) if isinstance(plan, FlowPlan) and operations is not None else None


MOST_TAKES = 2000
"""Takes that are counted, the newest of the library: a window must not wait."""


class Gains(QObject):
    """Counts again when it is asked after a change: the library may change while nobody looks."""

    changed = Signal()

    def __init__(self, selection: Selection, machine: Machine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._machine = machine
        self._takes: Sequence[TakeSummary] = ()
        self._studies: dict[Path, Results] = {}
        self._counted: tuple[Place, tuple[Gain, ...]] | None = None

    def set_takes(self, takes: Sequence[TakeSummary]) -> None:
        self._takes = takes[:MOST_TAKES]
        self._changed()

    def set_studies(self, studies: dict[Path, Results]) -> None:
        """Count these studies, by their folders, in place of others."""
        if studies != self._studies:
            self._studies = studies
            self._changed()

    def of(self, name: str) -> Gain | None:
        """The last known gain of a technique, with the knobs that are selected if they were measured; ``None`` if it
        was not measured here."""
        return best_known(self._gains(), UsedTechnique(name, self._selection.knobs(name)))

    def _gains(self) -> tuple[Gain, ...]:
        info = self._selection.info
        if info is None or not self._machine.title:
            return ()
        place = Place(info.id, info.all_weights, info.device, info.device_type, self._machine.title)
        if self._counted is None or self._counted[0] != place:
            self._counted = place, self._count(place)
        return self._counted[1]

    def _count(self, place: Place) -> tuple[Gain, ...]:
        studied = (one for results in self._studies.values() for one in of_study(results, place))
        return *of_takes(self._takes, place), *studied

    def _changed(self) -> None:
        self._counted = None
        self.changed.emit()
