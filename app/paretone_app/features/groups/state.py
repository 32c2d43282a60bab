"""The token groups in use: found by the engine, kept in files, taken up for the selected knobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QObject

from paretone.session.commands import Prepare
from paretone.session.events import Event, Prepared
from paretone.setting.compatibility import Compatibility
from paretone.setting.setting import UsedTechnique
from paretone.techniques.token_groups import TECHNIQUE
from paretone.techniques.token_groups.command import read
from paretone.techniques.token_groups.groups import DECIDED, FindGroups, Groups, GroupsFound, HearGroup
from paretone_app.state.app_state import AppState
from paretone_app.state.artefact_store import ArtefactStore
from paretone_app.state.availability import require
from paretone_app.state.jobs import Kind

NAME = TECHNIQUE.name


class GroupsState(ArtefactStore):
    """Token groups, found by the engine."""

    kind = Groups
    unwritten = "The token groups could not be written to {path} ({reason}). They can be used until the window closes."
    artefact: Groups | None

    def __init__(self, state: AppState, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(state, TECHNIQUE, folder, parent)

    def read(self, path: Path) -> Groups:
        return read(path)

    def file_name(self, artefact: Groups) -> str:
        return f"{artefact.fingerprint}-{artefact.cosine:g}.json"

    @property
    def origin(self) -> tuple[str, str] | None:
        return None if self.artefact is None else ("Token groups", self.artefact.line)

    def problem(self) -> str:
        if not self._selection.is_used(NAME) or self.artefact is not None:
            return ""
        return f"{TECHNIQUE.title} needs token groups: find them first, in Groups."

    def serves(self, artefact: Groups, wanted: Compatibility) -> bool:
        return not artefact.mismatch(wanted)

    def chosen(self, wanted: Compatibility | None) -> Groups | None:
        """The newest that were found for the selected weights and knobs."""
        knobs = self._selection.knobs(NAME)
        fitting = (one for one in reversed(self.kept) if wanted is not None and self.serves(one, wanted))
        return next((one for one in fitting if all(getattr(one, name) == knobs[name] for name in DECIDED)), None)

    def knobs_of(self, artefact: Groups) -> Mapping[str, object]:
        return {name: getattr(artefact, name) for name in DECIDED}

    # --- What can be done ---------------------------------------------------------------------------------------------
    def why_not_find(self) -> str:
        """Why no groups can be found now, as a sentence, or ``""``."""
        if not any(one.name == NAME for one in self._selection.techniques):
            return f"{self._selection.entry.title} has no speech tokens: choose another model in Setup."
        return self._selection.why_not_ready()

    def why_not_hear(self) -> str:
        """Why no group can be heard now, as a sentence, or ``""``."""
        none = "" if self.artefact is not None else "There are no groups yet: find them first."
        return self.why_not_find() or none or ("" if self._selection.voice else self._state.availability.why_no_voice())

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
            self.keep(event.result.groups)
            self._find()
