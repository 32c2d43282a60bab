"""Artefacts of techniques: one store per technique that has an artefact, such as a strategy table.

Stores (:class:`paretone_app.state.artefact_store.ArtefactStore`) belong to the features of their techniques. All other
code asks :class:`Artefacts`, without knowledge of the technique or the artefact's content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from paretone.setting.setting import Artefact, Setting, UsedTechnique

if TYPE_CHECKING:
    from paretone_app.state.artefact_store import ArtefactStore


class Artefacts(QObject):
    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sources: dict[str, ArtefactStore] = {}

    def add(self, technique: str, source: ArtefactStore) -> None:
        """Register ``source`` as the store of ``technique``."""
        self._sources[technique] = source
        source.changed.connect(self.changed)

    def source(self, technique: str) -> ArtefactStore | None:
        return self._sources.get(technique)

    @property
    def sources(self) -> tuple[ArtefactStore, ...]:
        return tuple(self._sources.values())

    @property
    def in_use(self) -> Mapping[str, Artefact]:
        found = {name: source.artefact for name, source in self._sources.items()}
        return {name: artefact for name, artefact in found.items() if artefact is not None}

    def put_back(self, artefacts: Mapping[str, Artefact]) -> None:
        """Use ``artefacts`` again, a former value of :attr:`in_use`, if they fit."""
        for name, artefact in artefacts.items():
            self._sources[name].put_back(artefact)

    @property
    def at_hand(self) -> bool:
        """Whether any technique has an artefact, fitting or not."""
        return any(one.artefact is not None for one in self._sources.values())

    def fingerprint(self, technique: str) -> str:
        source = self._sources.get(technique)
        artefact = source.artefact if source is not None else None
        return artefact.fingerprint if artefact is not None else ""

    def problem(self, technique: str) -> str:
        """Why the artefact of ``technique`` does not fit the selection, as a sentence, or ``""``."""
        source = self._sources.get(technique)
        return source.problem() if source is not None else ""

    def of(self, setting: Setting) -> tuple[Artefact, ...]:
        """The artefacts in use for the techniques of ``setting``."""
        kept = (self._sources[one.technique].artefact for one in setting.techniques if one.technique in self._sources)
        return tuple(one for one in kept if one is not None)

    def entry(self, setting: Setting) -> UsedTechnique | None:
        """The first technique of ``setting`` with an artefact store."""
        return next((one for one in setting.techniques if one.technique in self._sources), None)

    def find(self, setting: Setting) -> Artefact | None:
        """The artefact named by ``setting``, if available."""
        entry = self.entry(setting)
        return self._sources[entry.technique].find(entry) if entry is not None else None

    def adopt(self, setting: Setting, artefact: Artefact, why: str) -> None:
        """Use ``artefact`` for the technique of ``setting`` that has a store, with an undo entry named ``why``."""
        entry = self.entry(setting)
        if entry is not None:
            self._sources[entry.technique].adopt(artefact, why)

    def adopt_all(self, setting: Setting, artefacts: Iterable[Artefact], why: str) -> None:
        """Use each of ``artefacts`` for the technique of ``setting`` that names it, with undo entries named ``why``."""
        for artefact in artefacts:
            for entry in setting.techniques:
                if entry.artefact == artefact.fingerprint and entry.technique in self._sources:
                    self._sources[entry.technique].adopt(artefact, why)

    def compare_with(self, artefact: Artefact | None) -> None:
        """Show the artefact of a point chosen in a study next to the ones in use."""
        for source in self._sources.values():
            source.compare_with(artefact)
