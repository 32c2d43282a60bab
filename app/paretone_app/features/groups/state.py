"""The token groups in use: found by the engine, kept in files, taken up for the selected knobs."""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from paretone.errors import PlainError, SettingError
from paretone.files import reason, write_atomically
from paretone.session.commands import Prepare
from paretone.session.events import Event, Prepared
from paretone.setting.compatibility import Compatibility
from paretone.setting.setting import Artefact, UsedTechnique
from paretone.techniques import resolve
from paretone.techniques.token_groups import TECHNIQUE
from paretone.techniques.token_groups.command import read
from paretone.techniques.token_groups.groups import DECIDED, FindGroups, Groups, GroupsFound, HearGroup
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import require
from paretone_app.state.jobs import Kind
from paretone_app.state.undo import Edit

NAME = TECHNIQUE.name


class GroupsState(QObject):
    """The source of token groups; see :class:`paretone_app.state.artefacts.ArtefactSource`."""

    changed = Signal()
    """The groups in use changed."""

    def __init__(self, state: AppState, folder: Path, parent: QObject | None = None) -> None:
        """``folder`` keeps the groups that were found, one file each."""
        super().__init__(parent)
        self._state, self._selection, self._folder = state, state.selection, folder
        self.groups: Groups | None = None
        self.problems: list[str] = []
        """Files that could not be read or written, as sentences."""
        self._kept: list[Groups] = []
        for path in sorted(folder.glob("*.json"), key=lambda one: one.stat().st_mtime):
            try:
                self._kept.append(read(path))
            except PlainError as error:
                self.problems.append(str(error))
        state.artefacts.add(NAME, self)
        state.selection.conditions_changed.connect(self._find)

    # --- As a source of artefacts -------------------------------------------------------------------------------------
    @property
    def artefact(self) -> Groups | None:
        return self.groups

    @property
    def origin(self) -> tuple[str, str] | None:
        return None if self.groups is None else ("Token groups", self.groups.line)

    @property
    def records(self) -> tuple[object, ...]:
        return ()

    def problem(self) -> str:
        """Why there are no groups for what is selected, as a sentence, or ``""``."""
        if not self._selection.is_used(NAME) or self.groups is not None:
            return ""
        return f"{TECHNIQUE.title} needs token groups: find them first, in Groups."

    def find(self, entry: UsedTechnique) -> Groups | None:
        """The groups that a setting names, among those that are kept."""
        return next((one for one in self._kept if one.fingerprint == entry.artefact), None)

    def fits(self, artefact: Artefact) -> bool:
        wanted = self.compatibility()
        return isinstance(artefact, Groups) and wanted is not None and not artefact.mismatch(wanted)

    def adopt(self, artefact: Artefact, why: str) -> None:
        if isinstance(artefact, Groups) and artefact != self.groups:
            self._keep(artefact)
            self._state.undo_stack.push(Edit(why, self.groups, artefact, self._use))

    def put_back(self, artefact: Artefact) -> None:
        if isinstance(artefact, Groups) and self.fits(artefact) and artefact != self.groups:
            self._use(artefact)

    def compare_with(self, artefact: Artefact | None) -> None:
        """No-op: groups have no comparison."""

    def set_knob(self, knob: str, value: object) -> bool:
        """No-op: other knobs need other groups."""
        return False

    # --- What can be done ---------------------------------------------------------------------------------------------
    def why_not_find(self) -> str:
        """Why no groups can be found now, as a sentence, or ``""``."""
        if not any(one.name == NAME for one in self._selection.techniques):
            return f"{self._selection.entry.title} has no speech tokens: choose another model in Setup."
        return self._selection.why_not_ready()

    def why_not_hear(self) -> str:
        """Why no group can be heard now, as a sentence, or ``""``."""
        none = "" if self.groups is not None else "There are no groups yet: find them first."
        return self.why_not_find() or none or ("" if self._selection.voice else self._state.availability.why_no_voice())

    def compatibility(self) -> Compatibility | None:
        """What groups must fit; ``None`` without a loaded model that has tokens."""
        if not self._selection.ready or self._selection.loaded.family not in TECHNIQUE.families:
            return None
        try:
            return resolve(self._selection.loaded, self._selection.setting, prepared=False).compatibility
        except SettingError:
            return None

    def search(self) -> None:
        """Find groups for the selected knobs. Raises when it cannot be done."""
        require(self.why_not_find())
        setting = self._selection.setting.with_technique(UsedTechnique(NAME, self._selection.knobs(NAME)))
        self._state.jobs.start(Kind.GROUPS, lambda job: Prepare(job, NAME, FindGroups(setting)))

    def hear(self, members: tuple[int, ...]) -> None:
        """Decode ``members`` of a group. Raises when it cannot be done."""
        require(self.why_not_hear())
        request = HearGroup(self._selection.baseline_setting, self._selection.speaker, members)
        self._state.jobs.start(Kind.TOKENS, lambda job: Prepare(job, NAME, request))

    def follow(self, event: Event) -> None:
        """Take up groups that were found."""
        if isinstance(event, Prepared) and isinstance(event.result, GroupsFound):
            self._keep(event.result.groups)
            self._find()

    # --- Groups -------------------------------------------------------------------------------------------------------
    def _keep(self, groups: Groups) -> None:
        """Keep ``groups``, in memory at least."""
        self._kept = [*(one for one in self._kept if one != groups), groups]
        path = self._folder / f"{groups.fingerprint}-{groups.cosine:g}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(groups.to_json()).encode())
        except OSError as error:
            self.problems.append(
                f"The token groups could not be written to {path} ({reason(error)}). They can be used until the window "
                "closes."
            )

    def _use(self, groups: Groups | None) -> None:
        self.groups = groups
        if groups is not None:
            self._selection.put_knobs(NAME, **{name: getattr(groups, name) for name in DECIDED})
        self.changed.emit()

    @Slot()
    def _find(self) -> None:
        """Take up the newest groups that were found for the selected weights and knobs."""
        wanted, knobs = self.compatibility(), self._selection.knobs(NAME)
        found = None
        if wanted is not None:
            fitting = (one for one in reversed(self._kept) if not one.mismatch(wanted))
            found = next((one for one in fitting if all(getattr(one, name) == knobs[name] for name in DECIDED)), None)
        if found != self.groups:
            self.groups = found
            self.changed.emit()
