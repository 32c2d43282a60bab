"""Measured gains of techniques for the loaded model on its device: from the take library and open studies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from paretone.setting.library import TakeSummary
from paretone.setting.setting import UsedTechnique
from paretone.studies.gains import Gain, Place, best_known, of_takes
from paretone_app.state.machine import Machine
from paretone_app.state.selection import Selection

if TYPE_CHECKING:
    from paretone.studies.results import Results


MOST_TAKES = 2000
"""Takes that are counted, the newest of the library: a window must not wait."""


class Gains(QObject):
    """Counts again when it is asked after a change: the library may change while nobody looks."""

    changed = Signal()
    """There are other takes or studies."""

    def __init__(self, selection: Selection, machine: Machine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._machine = machine
        self._takes: Sequence[TakeSummary] = ()
        self._studies: dict[Path, Results] = {}
        self._counted: tuple[Place, tuple[Gain, ...]] | None = None

    def set_takes(self, takes: Sequence[TakeSummary]) -> None:
        """Count these takes, newest first, in place of others."""
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
        from paretone.studies.gains import of_study  # Imported here: what reads studies takes longer than a window may.

        studied = (one for results in self._studies.values() for one in of_study(results, place))
        return *of_takes(self._takes, place), *studied

    def _changed(self) -> None:
        self._counted = None
        self.changed.emit()
