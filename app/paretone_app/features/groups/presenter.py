"""The presenter of Groups: finds groups of tokens, plays one, and writes both to files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from paretone.audio.recording import write_sound
from paretone.session.events import Event, Prepared
from paretone.techniques.token_groups.groups import GroupHeard
from paretone_app.audio.sound import Sound
from paretone_app.features.groups.state import GroupsState
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Presenter, Services
from paretone_app.shell import file_dialogs
from paretone_app.shell.notices import Level
from paretone_app.state.jobs import Kind

if TYPE_CHECKING:
    from paretone_app.features.groups.panel import GroupsPanel


class GroupsPresenter(Presenter):
    """Owns Groups."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.state = GroupsState(services.state, services.folder / "token-groups", self)
        self._player = services.features.find(PlayerPresenter)
        self._asked: Path | None = None
        """Where the sound that is being decoded goes, rather than into the player."""
        self.groups: GroupsPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"groups": self._build_groups}
        self.state.changed.connect(self.refresh)

    def engine_starts(self) -> None:
        """Say which groups could not be read."""
        self._tell_problems()

    @Slot()
    def refresh(self) -> None:
        if self.groups is None:
            return
        jobs = self._state.jobs
        waiting = jobs.why_wait
        if any(job.kind is Kind.GROUPS for job in jobs.running):
            waiting = "Groups are being found; press Esc to cancel."
        self.groups.set_groups(self.state.artefact)
        heard = self.state.why_not_hear() or waiting or self._player.why_not_hear()
        self.groups.set_reasons(self.state.why_not_find() or waiting, heard)

    def follow(self, event: Event) -> None:
        """Take up groups, and play or write a sound."""
        self.state.follow(event)
        self._tell_problems()
        if isinstance(event, Prepared) and isinstance(event.result, GroupHeard):
            self._put(event.result)

    def _build_groups(self) -> QWidget:
        from paretone_app.features.groups.panel import GroupsPanel

        self.groups = GroupsPanel(self._theme.colours)
        self.groups.search_wanted.connect(lambda: self._actions.attempt(self.state.search))
        self.groups.hear_wanted.connect(self._hear)
        self.groups.keep_wanted.connect(self._ask_where_to_keep)
        self.groups.sound_wanted.connect(self._ask_where_to_put_sound)
        self.refresh()
        return self.groups

    # --- Sounds and files ---------------------------------------------------------------------------------------------
    @Slot(object)
    def _hear(self, members: tuple[int, ...]) -> None:
        self._asked = None
        self._actions.attempt(lambda: self.state.hear(members))

    @Slot(object)
    def _ask_where_to_put_sound(self, members: tuple[int, ...]) -> None:
        name = f"tokens-{'-'.join(map(str, members[:4]))}.wav"
        self._ask_where_to_write(
            "Sound of the group", file_dialogs.sound(), name, lambda path: self.save(members, path)
        )

    def save(self, members: tuple[int, ...], path: Path) -> None:
        """Decode ``members`` into the WAV file ``path``. Raises when it cannot be done."""
        self.state.hear(members)
        self._asked = path

    def _put(self, heard: GroupHeard) -> None:
        path, self._asked = self._asked, None
        if path is None:
            listed = ", ".join(map(str, heard.members))
            self._player.hear_sound(Sound(heard.samples, heard.sample_rate, f"Tokens {listed}"))
            return

        def write_it() -> None:
            remarks = write_sound(path, heard.samples, heard.sample_rate)
            self._notices.note(" ".join([f"Wrote {path}.", *remarks]) if remarks else f"Wrote {path}")

        self._actions.attempt(write_it)

    @Slot()
    def _ask_where_to_keep(self) -> None:
        groups = self.state.artefact
        if groups is not None:
            name = f"token-groups-{groups.model}-{groups.cosine:g}.json"
            self._ask_where_to_write("Token groups", file_dialogs.JSON, name, self.write)

    def write(self, path: Path) -> None:
        """Write the groups in use to ``path``. Raises :class:`PlainError` when it cannot be written."""
        if self.state.write(path):
            self._notices.note(f"Wrote {path}")

    def _tell_problems(self) -> None:
        for sentence in self.state.problems:
            self._notices.note(sentence, Level.WARNING)
        self.state.problems.clear()
