"""Artefacts of techniques: one store per technique that keeps an artefact, such as a strategy table.

Stores belong to the features of their techniques. Everything else asks :class:`Artefacts`, and knows neither the
technique nor what its artefact holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from PySide6.QtCore import QObject, Signal, Slot

from paretone.errors import PlainError, SettingError
from paretone.files import reason, write, write_atomically
from paretone.setting.compatibility import Compatibility
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.techniques import Technique, compatibility_of
from paretone_app.state.editing import Edit

if TYPE_CHECKING:
    from paretone_app.state.app_state import AppState


class ArtefactStore(QObject):
    """The artefact of one technique that is in use, and those that are kept in a folder, one file each.

    A feature of the technique makes a subclass, which says how files are read and which artefact serves what is
    selected. ``kind`` is the artefacts' class, which offers ``fingerprint``, ``compatibility`` and ``to_json()``.
    """

    changed = Signal()
    """Another artefact is in use, or what it is compared with."""
    kind: ClassVar[type]
    unwritten: ClassVar[str] = ""
    """Said of one whose file could not be written, with ``{path}`` and ``{reason}``."""

    def __init__(
        self, state: AppState, technique: Technique, folder: Path | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._state, self._selection, self._technique, self._folder = state, state.selection, technique, folder
        self.artefact: Any = None
        """The one in use, whether it fits or not."""
        self.problems: list[str] = []
        """Files that could not be read or written, as sentences."""
        self.kept: list[Any] = []
        """The artefacts in the folder, the newest last."""
        files = folder.glob("*.json") if folder is not None else ()
        for path in sorted(files, key=lambda one: one.stat().st_mtime):
            try:
                self.kept.append(self.read(path))
            except PlainError as error:
                self.problems.append(str(error))
        state.artefacts.add(technique.name, self)
        state.selection.conditions_changed.connect(self._find)

    # --- What subclasses say ------------------------------------------------------------------------------------------
    def read(self, path: Path) -> Artefact:
        """The artefact in a file. Raises :class:`PlainError`."""
        raise NotImplementedError

    def file_name(self, artefact: Any) -> str:
        """Name of the file that keeps ``artefact``."""
        raise NotImplementedError

    @property
    def origin(self) -> tuple[str, str] | None:
        """The artefact in use for people: what it is called, and what it holds."""
        raise NotImplementedError

    def problem(self) -> str:
        """Why the artefact in use does not serve what is selected, as a sentence, or ``""``."""
        raise NotImplementedError

    def serves(self, artefact: Any, wanted: Compatibility) -> bool:
        """Whether ``artefact`` was made for what is selected, ``wanted``."""
        return bool(artefact.compatibility == wanted)

    def chosen(self, wanted: Compatibility | None) -> Artefact | None:
        """Of those that are kept, the one to use for what is selected."""
        return None

    def knobs_of(self, artefact: Any) -> Mapping[str, object]:
        """Values of the technique's knobs that the artefact has decided."""
        return {}

    @property
    def records(self) -> tuple[object, ...]:
        """Measurements of its preparation, for views."""
        return ()

    def compare_with(self, artefact: Artefact | None) -> None:
        """Show ``artefact`` next to the one in use; ``None`` for the usual one."""

    def set_knob(self, knob: str, value: object) -> bool:
        """Change a knob that the artefact follows; whether it is one."""
        return False

    # --- The one in use -----------------------------------------------------------------------------------------------
    def compatibility(self) -> Compatibility | None:
        """What an artefact must fit; ``None`` without a loaded model that takes one."""
        chosen = self._selection
        if not chosen.ready or chosen.loaded.family not in self._technique.families:
            return None
        try:
            return compatibility_of(chosen.loaded, chosen.setting)
        except SettingError:
            return None

    def fits(self, artefact: Artefact) -> bool:
        """Whether ``artefact`` was made for what is selected."""
        wanted = self.compatibility()
        return isinstance(artefact, self.kind) and wanted is not None and self.serves(artefact, wanted)

    def find(self, entry: UsedTechnique) -> Artefact | None:
        """The artefact that a technique in use names, if it is at hand."""
        return next((one for one in self.kept if one.fingerprint == entry.artefact), None)

    def adopt(self, artefact: Artefact, why: str) -> None:
        """Use ``artefact``; can be undone by the name ``why``."""
        if isinstance(artefact, self.kind) and artefact != self.artefact:
            self.keep(artefact)
            self._state.undo_stack.push(Edit(why, self.artefact, artefact, self._use))

    def put_back(self, artefact: Artefact) -> None:
        """Use ``artefact`` again, which was in use before, if it fits; makes no entry to undo."""
        if self.fits(artefact) and artefact != self.artefact:
            self._use(artefact)

    def keep(self, artefact: Any) -> None:
        """Keep ``artefact``, in memory at least."""
        self.kept = [*(one for one in self.kept if self.file_name(one) != self.file_name(artefact)), artefact]
        if self._folder is None:
            return
        path = self._folder / self.file_name(artefact)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(artefact.to_json()).encode())
        except OSError as error:
            self.problems.append(self.unwritten.format(path=path, reason=reason(error)))

    def write(self, path: Path) -> bool:
        """Write the artefact in use to ``path``; whether there is one. Raises :class:`PlainError`."""
        if self.artefact is not None:
            write(path, json.dumps(self.artefact.to_json()).encode())
        return self.artefact is not None

    def _use(self, artefact: Any) -> None:
        self.artefact = artefact
        if artefact is not None:
            self._selection.put_knobs(self._technique.name, **self.knobs_of(artefact))
        self.changed.emit()

    @Slot()
    def _find(self) -> None:
        """Take up what serves what is selected."""
        found = self.chosen(self.compatibility())
        if found != self.artefact:
            self.artefact = found
            self.changed.emit()


class Artefacts(QObject):
    """The sources, by the names of their techniques."""

    changed = Signal()
    """A technique's artefact changed."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sources: dict[str, ArtefactStore] = {}

    def add(self, technique: str, source: ArtefactStore) -> None:
        """Ask ``source`` for the artefact of ``technique`` from now on."""
        self._sources[technique] = source
        source.changed.connect(self.changed)

    def source(self, technique: str) -> ArtefactStore | None:
        """Source of the artefact of ``technique``, if it has one."""
        return self._sources.get(technique)

    @property
    def sources(self) -> tuple[ArtefactStore, ...]:
        """All sources."""
        return tuple(self._sources.values())

    @property
    def in_use(self) -> Mapping[str, Artefact]:
        """The artefacts in use, by technique."""
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
        """Fingerprint of the artefact of ``technique``, or ``""``."""
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
