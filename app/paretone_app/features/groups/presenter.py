"""The groups presenter: finds groups of tokens, plays one, and writes both to files."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.audio.recording import write_sound
from paretone.session.commands import Prepare
from paretone.session.events import Event, Prepared
from paretone.setting.compatibility import Compatibility
from paretone.setting.setting import UsedTechnique
from paretone.techniques.token_groups import TECHNIQUE
from paretone.techniques.token_groups.groups import DECIDED, FindGroups, GroupHeard, Groups, GroupsFound, HearGroup
from paretone_app.audio.sound import Sound
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Services, StorePresenter, built
from paretone_app.shell import file_dialogs
from paretone_app.state.artefact_store import ArtefactStore
from paretone_app.state.availability import require
from paretone_app.state.jobs import Kind

if TYPE_CHECKING:
    from paretone_app.features.groups.panel import GroupsPanel

NAME = TECHNIQUE.name


class GroupsState(ArtefactStore):
    technique, kind, request = TECHNIQUE, Groups, FindGroups
    unwritten = "The token groups could not be written to {path} ({reason}). They can be used until the window closes."
    artefact: Groups | None

    def file_name(self, artefact: Groups) -> str:
        return f"{artefact.fingerprint}-{artefact.cosine:g}.json"

    def proposal(self, artefact: Groups) -> str:
        return f"token-groups-{artefact.model}-{artefact.cosine:g}.json"

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
        """The newest groups found for the selected weights and knobs."""
        knobs = self._selection.knobs(NAME)
        fitting = (one for one in reversed(self.kept) if wanted is not None and self.serves(one, wanted))
        return next((one for one in fitting if all(getattr(one, name) == knobs[name] for name in DECIDED)), None)

    def knobs_of(self, artefact: Groups) -> Mapping[str, object]:
        return {name: getattr(artefact, name) for name in DECIDED}

    def why_not_find(self) -> str:
        """Why no groups can be found now, as a sentence, or ``""``."""
        if not any(one.name == NAME for one in self._selection.techniques):
            return f"{self._selection.entry.title} has no speech tokens: choose another model in Setup."
        info = self._selection.info
        return (TECHNIQUE.not_offered(info) if info else "") or self._selection.why_not_ready()

    def why_not_hear(self) -> str:
        """Why no group can be heard now, as a sentence, or ``""``."""
        none = "" if self.artefact is not None else "There are no groups yet: find them first."
        return self.why_not_find() or none or ("" if self._selection.voice else self._state.availability.why_no_voice())

    def search(self) -> None:
        require(self.why_not_find())
        setting = self._selection.setting.with_technique(UsedTechnique(NAME, self._selection.knobs(NAME)))
        self._state.jobs.start(Kind.GROUPS, lambda job: Prepare(job, NAME, FindGroups(setting)))

    def hear(self, members: tuple[int, ...]) -> None:
        require(self.why_not_hear())
        request = HearGroup(self._selection.baseline_setting, self._selection.speaker, members)
        self._state.jobs.start(Kind.TOKENS, lambda job: Prepare(job, NAME, request))

    def follow(self, event: Event) -> None:
        if isinstance(event, Prepared) and isinstance(event.result, GroupsFound):
            self._take_in(event.job, event.result.groups)


class GroupsPresenter(StorePresenter):
    state: GroupsState

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.state = GroupsState(services.state, services.folder / "token-groups", self)
        self._player = services.features.find(PlayerPresenter)
        self._asked: Path | None = None
        """File for the sound being decoded; ``None``: play it."""
        self.groups: GroupsPanel | None = None
        self.later = {"groups": self._build_groups}
        add, state = services.actions.add, self.state
        waits = "Groups are being found, or wait for it in the queue."
        finding = partial(services.state.jobs.why_one, Kind.GROUPS, waits)
        tip = "Group the tokens of the loaded model by the knobs in Setup"
        self._search = add("Find &groups", state.search, tip, lambda: state.why_not_find() or finding())
        tip = "Hear the group's tokens one after another, each for 0.4 s"
        self._play = add("&Play group", self._hear, tip, self._why_not_hear)
        tip = "Save that sound as a WAV file"
        self._save_sound = add("Save soun&d…", self._ask_where_to_put_sound, tip, self._why_not_hear)
        self._save = self._add_saving("groups", "There are no groups yet.", "Token groups")
        self.state.changed.connect(self.refresh)

    def refresh(self) -> None:
        if self.groups is not None:
            self.groups.set_groups(self.state.artefact)
        for action in (self._search, self._play, self._save_sound, self._save):
            action.refresh()

    def _why_not_hear(self) -> str:
        decoding = self._state.jobs.why_one(Kind.TOKENS, "Tokens are being decoded.")
        return self.state.why_not_hear() or decoding or self._player.why_not_hear()

    def follow(self, event: Event) -> None:
        super().follow(event)
        if not isinstance(event, Prepared) or not isinstance(heard := event.result, GroupHeard):
            return
        path, self._asked = self._asked, None
        if path is None:
            listed = ", ".join(map(str, heard.members))
            self._player.hear_sound(Sound(heard.samples, heard.sample_rate, f"Tokens {listed}"))
            return

        def write_it() -> None:
            remarks = write_sound(path, heard.samples, heard.sample_rate)
            self._notices.note(" ".join([f"Wrote {path}.", *remarks]) if remarks else f"Wrote {path}")

        self._actions.attempt(write_it)

    def _build_groups(self) -> "GroupsPanel":
        from paretone_app.features.groups.panel import GroupsPanel

        self.groups = GroupsPanel(self._search, self._play, self._save_sound, self._save)
        return self.groups

    def _hear(self) -> None:
        self._asked = None
        self.state.hear(built(self.groups).members)

    def _ask_where_to_put_sound(self) -> None:
        members = built(self.groups).members
        name = f"tokens-{'-'.join(map(str, members[:4]))}.wav"
        self._ask_where_to_write(
            "Sound of the group", file_dialogs.sound(), name, lambda path: self.save(members, path)
        )

    def save(self, members: tuple[int, ...], path: Path) -> None:
        """Decode ``members`` into the WAV file ``path``. Raises :class:`SettingError` if that is not possible."""
        self.state.hear(members)
        self._asked = path
