"""Artefacts of techniques: one store per technique that keeps an artefact, such as a strategy table.

Stores belong to the features of their techniques. Everything else asks :class:`Artefacts`, and knows neither the
technique nor what its artefact holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from paretone.setting.setting import Artefact, Setting, UsedTechnique


class ArtefactSource(QObject):
    """The artefact of one technique that is in use, and where others are found:
    :class:`paretone_app.state.artefact_store.ArtefactStore`."""

    changed = Signal()
    """Another artefact is in use, or what it is compared with."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.artefact: Any = None
        """The one in use, whether it fits or not."""

    @property
    def origin(self) -> tuple[str, str] | None:
        """The artefact in use for people: what it is called, and what it holds."""
        raise NotImplementedError

    def problem(self) -> str:
        """Why the artefact in use does not serve what is selected, as a sentence, or ``""``."""
        raise NotImplementedError

    def fits(self, artefact: Artefact) -> bool:
        """Whether ``artefact`` was made for what is selected."""
        raise NotImplementedError

    def find(self, entry: UsedTechnique) -> Artefact | None:
        """The artefact that a technique in use names, if it is at hand."""
        raise NotImplementedError

    def adopt(self, artefact: Artefact, why: str) -> None:
        """Use ``artefact``; can be undone by the name ``why``."""
        raise NotImplementedError

    def put_back(self, artefact: Artefact) -> None:
        """Use ``artefact`` again, which was in use before, if it fits; makes no entry to undo."""
        raise NotImplementedError

    @property
    def records(self) -> tuple[object, ...]:
        """Measurements of its preparation, for views."""
        return ()

    def compare_with(self, artefact: Artefact | None) -> None:
        """Show ``artefact`` next to the one in use; ``None`` for the usual one."""

    def set_knob(self, knob: str, value: object) -> bool:
        """Change a knob that the artefact follows; whether it is one."""
        return False


class Artefacts(QObject):
    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sources: dict[str, ArtefactSource] = {}

    def add(self, technique: str, source: ArtefactSource) -> None:
        """Ask ``source`` for the artefact of ``technique`` from now on."""
        self._sources[technique] = source
        source.changed.connect(self.changed)

    def source(self, technique: str) -> ArtefactSource | None:
        return self._sources.get(technique)

    @property
    def sources(self) -> tuple[ArtefactSource, ...]:
        return tuple(self._sources.values())

    @property
    def in_use(self) -> Mapping[str, Artefact]:
        found = {name: source.artefact for name, source in self._sources.items()}
        return {name: artefact for name, artefact in found.items() if artefact is not None}

    def put_back(self, artefacts: Mapping[str, Artefact]) -> None:
        """Use ``artefacts`` again, as :attr:`in_use` gave them, where they fit."""
        for name, artefact in artefacts.items():
            self._sources[name].put_back(artefact)

    @property
    def at_hand(self) -> bool:
        """Whether any technique has an artefact, whether it fits or not."""
        return any(one.artefact is not None for one in self._sources.values())

    def fingerprint(self, technique: str) -> str:
        source = self._sources.get(technique)
        artefact = source.artefact if source is not None else None
        return artefact.fingerprint if artefact is not None else ""

    def problem(self, technique: str) -> str:
        """Why the artefact of ``technique`` does not serve what is selected, as a sentence, or ``""``."""
        source = self._sources.get(technique)
        return source.problem() if source is not None else ""

    def of(self, setting: Setting) -> tuple[Artefact, ...]:
        """The artefacts in use for the techniques of ``setting``."""
        kept = (self._sources[one.technique].artefact for one in setting.techniques if one.technique in self._sources)
        return tuple(one for one in kept if one is not None)

    def entry(self, setting: Setting) -> UsedTechnique | None:
        """The technique of ``setting`` that keeps an artefact, if there is one."""
        return next((one for one in setting.techniques if one.technique in self._sources), None)

    def find(self, setting: Setting) -> Artefact | None:
        """The artefact that ``setting`` names, if it is at hand."""
        entry = self.entry(setting)
        return self._sources[entry.technique].find(entry) if entry is not None else None

    def adopt(self, setting: Setting, artefact: Artefact, why: str) -> None:
        """Use ``artefact`` for the technique of ``setting`` that keeps one; can be undone by the name ``why``."""
        entry = self.entry(setting)
        if entry is not None:
            self._sources[entry.technique].adopt(artefact, why)

    def adopt_all(self, setting: Setting, artefacts: Iterable[Artefact], why: str) -> None:
        """Use ``artefacts``, each for the technique of ``setting`` that names it; can be undone by the name ``why``."""
        for artefact in artefacts:
            for entry in setting.techniques:
                if entry.artefact == artefact.fingerprint and entry.technique in self._sources:
                    self._sources[entry.technique].adopt(artefact, why)

    def compare_with(self, artefact: Artefact | None) -> None:
        """Have the artefact of a point that was chosen elsewhere shown next to the one in use."""
        for source in self._sources.values():
            source.compare_with(artefact)
