"""The artefacts of one technique: the one in use and the stored ones."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from PySide6.QtCore import QObject

from paretone.errors import SettingError, told
from paretone.files import reason, write, write_atomically
from paretone.session.events import Event
from paretone.setting.compatibility import Compatibility
from paretone.setting.profile import artefact_in
from paretone.setting.setting import Artefact, UsedTechnique
from paretone.techniques import Technique, compatibility_of
from paretone_app.state.app_state import AppState
from paretone_app.state.artefacts import ArtefactSource
from paretone_app.state.editing import Edit


class ArtefactStore(ArtefactSource):
    """The artefact of one technique in use, and the others stored in a folder, one file each. A subclass in the
    technique's feature reads files and says which artefact fits. ``kind`` is the artefacts' class, with
    ``fingerprint``, ``compatibility`` and ``to_json()``."""

    technique: ClassVar[Technique]
    kind: ClassVar[type]
    unwritten: ClassVar[str] = ""
    """Message about a file that could not be written, with ``{path}`` and ``{reason}``."""

    def __init__(self, state: AppState, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state, self._selection, self.folder = state, state.selection, folder
        self.problems: list[str] = []
        """Files that could not be read or written, as sentences."""
        self.kept: list[Any] = self._stored(folder)
        """The artefacts in the folder, oldest first."""
        state.artefacts.add(self.technique.name, self)
        state.selection.conditions_changed.connect(self._find)

    def _stored(self, folder: Path) -> list[Any]:
        found = []
        for path in sorted(folder.glob("*.json"), key=lambda one: one.stat().st_mtime):
            with told(self.problems.append):
                found.append(self.read(path))
        return found

    # --- For subclasses -----------------------------------------------------------------------------------------------
    def read(self, path: Path) -> Any:
        """Read what a file keeps. Raises :class:`PlainError`."""
        return artefact_in(path, self.technique)

    def content(self, artefact: Any) -> dict[str, object]:
        """What a file keeps, as JSON values."""
        return dict(artefact.to_json())

    def file_name(self, artefact: Any) -> str:
        raise NotImplementedError

    def proposal(self, artefact: Any) -> str:
        """File name proposed to the user."""
        return self.file_name(artefact)

    def serves(self, artefact: Any, wanted: Compatibility) -> bool:
        """Whether ``artefact`` was made for the current selection, ``wanted``."""
        return bool(artefact.compatibility == wanted)

    def chosen(self, wanted: Compatibility | None) -> Any:
        """What is kept for the current selection."""
        return None

    def knobs_of(self, artefact: Any) -> Mapping[str, object]:
        """Values of the technique's knobs that the artefact determines."""
        return {}

    def follow(self, event: Event) -> None:
        """Take over what ``event`` says was prepared."""
        raise NotImplementedError

    # --- In use -------------------------------------------------------------------------------------------------------
    def compatibility(self) -> Compatibility | None:
        """Compatibility required of an artefact; ``None`` without a loaded model of the technique's families."""
        chosen = self._selection
        if not chosen.ready or chosen.loaded.family not in self.technique.families:
            return None
        try:
            return compatibility_of(chosen.loaded, chosen.setting, of_flow=self.technique.of_mel_flow)
        except SettingError:
            return None

    def fits(self, artefact: Artefact) -> bool:
        wanted = self.compatibility()
        return isinstance(artefact, self.kind) and wanted is not None and self.serves(artefact, wanted)

    def find(self, entry: UsedTechnique) -> Artefact | None:
        return next((one for one in self.kept if one.fingerprint == entry.artefact), None)

    def adopt(self, artefact: Artefact, why: str) -> None:
        if isinstance(artefact, self.kind) and artefact != self.artefact:
            self.keep(artefact)
            self._state.undo_stack.push(Edit(why, self.artefact, artefact, self.use))

    def put_back(self, artefact: Artefact) -> None:
        if self.fits(artefact) and artefact != self.artefact:
            self.use(artefact)

    def keep(self, artefact: Any) -> None:
        self.kept = [*(one for one in self.kept if self.file_name(one) != self.file_name(artefact)), artefact]
        path = self.folder / self.file_name(artefact)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(self.content(artefact)).encode())
        except OSError as error:
            self.problems.append(self.unwritten.format(path=path, reason=reason(error)))

    def write(self, path: Path) -> bool:
        """Write the artefact in use to ``path``; returns whether there is one. Raises :class:`PlainError`."""
        if self.artefact is not None:
            write(path, json.dumps(self.artefact.to_json()).encode())
        return self.artefact is not None

    def _take_in(self, job: int, artefact: Any) -> None:
        """Keep what ``job`` made, and use it if it fits."""
        self.keep(artefact)
        self.made[job] = artefact
        self._find()

    def use(self, artefact: Any) -> None:
        """Use ``artefact``, after an edit or its undo."""
        self.artefact = artefact
        if artefact is not None:
            self._selection.put_knobs(self.technique.name, **self.knobs_of(artefact))
        self.changed.emit()

    def _find(self) -> None:
        found = self.chosen(self.compatibility())
        if found != self.artefact:
            self.artefact = found
            self.changed.emit()
