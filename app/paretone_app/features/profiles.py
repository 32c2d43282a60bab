"""Open a profile: read the file, load its model, then select its setting."""

from functools import partial
from pathlib import Path

from paretone.errors import ProfileError
from paretone.models import catalogue
from paretone.models.voices import shown_name, without_folder
from paretone.setting.profile import Profile
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.state.differences import technique_text
from paretone_app.state.jobs import Job, Kind, Outcome


class ProfilesPresenter(Presenter):
    """Owns no panel: a profile's setting appears in the panels that edit it."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._features = services.features
        self._waiting: tuple[Path, Profile] | None = None
        """Profile to select once its model is loaded."""
        self._asked = False
        ask = partial(self._ask_for_file, "Open profile", "Profiles (*.json *.paretone)", self.open)
        self._actions.bind(self._actions["open_profile"], ask)

    def open(self, path: Path) -> None:
        """Load the model of the profile in a file, then select its setting. Raises :class:`PlainError`."""
        self._waiting, self._asked = None, False
        profile = Profile.load(path)
        self._waiting = path, profile
        self._go_on()

    def _go_on(self) -> None:
        """Select the waiting profile, after loading its model if needed; do nothing while a model loads."""
        chosen = self._state.selection
        if self._waiting is None or chosen.loading or not (chosen.ready or self._asked):
            return
        path, profile = self._waiting
        if chosen.ready and chosen.model_id == profile.setting.model:
            self._waiting = None
            self._use(path, profile)
        elif self._asked:
            self._waiting = None
            self._notices.warn(f"{path.name} was not opened: {chosen.entry.title} is loaded.")
        else:
            self._asked = True
            entry = catalogue.entry(profile.setting.model)
            self._features.find(SetupPresenter).choose_model(entry.id)
            if not chosen.is_installed(entry.id):
                self._workspaces.go_to("setup")
                self._notices.warn(
                    f"{path.name} is for {entry.title}, which is not here: choose its folder or download it in Setup."
                )

    def _use(self, path: Path, profile: Profile) -> None:
        chosen, named = self._state.selection, profile.evidence.voice
        try:
            profile.check(chosen.loaded)
        except ProfileError as error:
            raise ProfileError(f"{path.name} was not opened. {error}") from error
        voice = next((one.id for one in chosen.voices if named and named in (one.id, without_folder(one.id))), "")
        self._state.editing.adopt_profile(profile.setting, profile.artefacts, voice, f"open {path.name}")
        self._workspaces.go_to("setup")
        self._notices.note(f"Opened {path}")
        text = f"Opened {path.name}: {technique_text(profile.setting)}."
        if named and not voice:
            text += f" It was measured with the voice {shown_name(named)}, which is not here."
        self._notices.say(text, "info")

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.LOAD and outcome is Outcome.FAILED and self._asked:
            # Setup reports the reason: it knows which model stays.
            self._waiting = None
        elif job.kind is Kind.LOAD and self._waiting is not None:
            self._actions.attempt(self._go_on)
