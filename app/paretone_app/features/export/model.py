"""Contents of an export: the selected setting with its artefact and its evidence."""

from __future__ import annotations

from pathlib import Path

from paretone.errors import PlainError
from paretone.export.accounts import Account
from paretone.export.targets import Target, account
from paretone.models.base import ModelInfo, TrainedWeights
from paretone.session.commands import ExportProfile
from paretone.setting.profile import Evidence, Profile
from paretone.setting.take import Take
from paretone.techniques import techniques
from paretone.techniques.base import Technique
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
