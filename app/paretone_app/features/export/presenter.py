"""The profile presenter: the setting with its evidence, and weights, go out in forms that run elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot

from paretone.errors import PlainError, SettingError
from paretone.export.accounts import Account
from paretone.export.targets import Target, account, target
from paretone.models.base import ModelInfo, TrainedWeights
from paretone.session.commands import ExportProfile, ExportWeights
from paretone.session.events import Event, ProfileExported, WeightsExported
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.profile import Evidence, Profile
from paretone.setting.setting import Setting
from paretone.setting.take import Take
from paretone.techniques import techniques
from paretone.techniques.base import Technique
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.tour.model import Part
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import require
from paretone_app.state.jobs import Kind


class ProfileExport:
    """Makes profiles of what is selected, and has them exported."""

    def __init__(self, state: AppState) -> None:
        self._state = state

    @property
    def evidence(self) -> Take | None:
        """The take, A or B, that was made exactly as things are selected; a profile quotes its figures."""
        return self._state.comparison.made_with(self._state.selection.setting)

    def profile(self) -> Profile:
        """The selected setting with its artefact and its evidence. Raises :class:`PlainError` when it makes none."""
        state = self._state
        require(state.availability.why_not_export())
        take, baseline, evidence = self.evidence, state.comparison.take_a, None
        if take is not None:
            compared = baseline is not None and take.fidelity_to == baseline.id
            evidence = Evidence.of(take, baseline if compared else None)
        setting = state.selection.setting
        return Profile.of(setting, state.selection.loaded, state.artefacts.of(setting), evidence)

    def write(self, path: Path) -> None:
        """Write the profile to a file. Raises :class:`PlainError` when that cannot be done."""
        self.profile().save(path)

    def account(self, target: Target) -> Account:
        """What ``target`` honours and drops of the profile, or why it cannot have it."""
        try:
            profile = self.profile()
        except PlainError as error:
            return Account(why_not=str(error))
        info = self._state.selection.info
        return account(target, profile, info is not None and info.trained_guidance is not None)

    def export(self, target: Target, folder: Path) -> None:
        """Have the engine export the profile to ``target``. Raises :class:`PlainError` when it cannot be done."""
        require(self.account(target).why_not)
        profile, checkpoint = self.profile(), self._state.selection.model_folder
        self._state.jobs.start(
            Kind.EXPORT, lambda job: ExportProfile(job, profile, target.name, str(folder), checkpoint)
        )


def technique_of(weights: TrainedWeights, info: ModelInfo) -> Technique | None:
    """The technique that runs these weights of a model, if there is one."""
    return next((one for one in techniques() if one.weights is not None and weights in one.weights.all_of(info)), None)


class ExportPresenter(Presenter):
    """Owns no panel: exporting is a dialog."""

    written = Signal(str)
    """A profile was exported to this file or folder."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._exported: tuple[Setting, str] | None = None
        """Setting and voice of the profile that was exported last."""
        actions, available = services.actions, services.state.availability
        actions.bind(actions.export_profile, self._ask_about_profile, available.why_not_export)
        actions.bind(actions.export_weights, self._ask_which_weights, self.why_no_weights)

    def step_done(self, action: str) -> bool:
        """What is selected has been exported as a profile."""
        return self._exported is not None and self._exported == self._exporting

    def step_changed(self, action: str) -> bool:
        """Another profile has been exported."""
        return self._exported is not None

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        return ("export_profile",)

    @property
    def _exporting(self) -> tuple[Setting, str]:
        chosen = self._state.selection
        return chosen.setting, chosen.voice.id if chosen.voice is not None else ""

    def why_no_weights(self) -> str:
        """Why the loaded model has no student or draft to write, as a sentence, or ``""``."""
        if reason := self._state.selection.why_not_ready():
            return reason
        info = self._state.selection.loaded
        if not info.students and not info.drafts:
            return f"{info.title} has no student or draft to export; train one in the Training panel."
        return ""

    def follow(self, event: Event) -> None:
        """Tell of a profile that the engine exported."""
        if isinstance(event, ProfileExported):
            how = " Its README.md explains how to use it." if "README.md" in event.files else ""
            self._done(event.folder, f"{event.folder} holds {target(event.target).summary}.{how}")
        elif isinstance(event, WeightsExported):
            self._notices.note(f"Wrote {event.folder}")
            self._notices.say(f"The {event.kind} is in {event.folder}: {', '.join(event.files)}.", "info")

    def write(self, path: Path) -> None:
        """Export the present setting to ``path`` without asking. Raises :class:`PlainError` when it cannot be done."""
        ProfileExport(self._state).write(path)
        self._tell(str(path))

    def _ask_about_profile(self) -> None:
        from paretone_app.features.export.dialogs import ProfileDialog

        dialog = ProfileDialog(self._state, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.written.connect(self._tell)
        dialog.open()

    def _ask_which_weights(self) -> None:
        from paretone_app.features.export.dialogs import WeightsDialog

        reason = self.why_no_weights()
        if reason:
            raise SettingError(reason)
        dialog = WeightsDialog(self._state.selection.loaded, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.wanted.connect(self._export_weights)
        dialog.open()

    @Slot(str, str, str)
    def _export_weights(self, kind: str, file: str, folder: str) -> None:
        state = self._state
        settings = self._settings_for(file)
        model, place = state.selection.model_id, state.selection.model_folder
        state.jobs.start(Kind.EXPORT, lambda job: ExportWeights(job, model, kind, file, folder, settings, place))

    def _settings_for(self, file: str) -> Values:
        """The present knobs of the technique that runs the draft in ``file``, without those that choose it."""
        info = self._state.selection.loaded
        draft = next((one for one in info.drafts if one.path == file), None)
        runs = technique_of(draft, info) if draft is not None else None
        if runs is None or runs.weights is None:
            return NO_VALUES
        choosing = runs.weights.knobs_of(draft)
        knobs = self._state.selection.knobs(runs.name)
        return Values({name: value for name, value in knobs.items() if name not in choosing})

    @Slot(str)
    def _tell(self, path: str) -> None:
        place = self._state.selection.model_folder
        folder = f" --folder {shlex.quote(place)}" if place else ""
        command = f"paretone speak --profile {shlex.quote(path)}{folder} --text “…” --out out.wav"
        self._done(path, f"The profile is in {path}. Run it: {command}")

    def _done(self, path: str, sentence: str) -> None:
        self._exported = self._exporting
        self._notices.note(f"Wrote {path}")
        self._notices.say(sentence, "info")
        self.written.emit(path)
        self.changed.emit()
