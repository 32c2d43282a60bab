"""Writing profiles and weights in forms that others read."""

from __future__ import annotations

from pathlib import Path

from paretone.export.language import LanguageExport, export_language
from paretone.export.targets import export
from paretone.session.commands import ExportProfile, ExportWeights
from paretone.session.events import ProfileExported, WeightsExported
from paretone.session.executor import Executor
from paretone.session.observers import JobObserver, RunningJob


def export_profile(command: ExportProfile, executor: Executor, job: RunningJob) -> ProfileExported:
    """Write a profile in the form of its target."""
    folder = Path(command.folder)
    written = export(command.profile, command.target, folder, JobObserver(job), command.model_folder)
    names = tuple(path.relative_to(folder).as_posix() for path in written)
    return ProfileExported(command.job, command.target, command.folder, names)


def export_weights(command: ExportWeights, executor: Executor, job: RunningJob) -> WeightsExported:
    """Write a student or a draft as a checkpoint."""
    folder = Path(command.folder)
    wanted = LanguageExport(command.model, command.kind, folder, command.file, command.settings, command.model_folder)
    names = tuple(path.relative_to(folder).as_posix() for path in export_language(wanted, JobObserver(job)))
    return WeightsExported(command.job, command.kind, command.folder, names)
