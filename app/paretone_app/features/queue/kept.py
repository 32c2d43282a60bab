"""The queue's file, so that jobs survive a restart: commands in the form in which they travel to other machines."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from paretone import files
from paretone.errors import PlainError
from paretone.fields import exact
from paretone.reading import read_bytes, shown
from paretone.remote import wire
from paretone.session import commands
from paretone.training.requests import TrainingRequest
from paretone_app.state.jobs import Job, Kind

VERSION = 1
_LARGEST = 1 << 26
_KEPT = (
    commands.DownloadModel,
    commands.ExportProfile,
    commands.ExportWeights,
    commands.Prepare,
    commands.RunStudy,
    commands.Synthesise,
    commands.VerifyStudy,
)
"""Commands with results that are kept in files; others fill a panel that a new window has yet to fill."""
_FIELDS = {"number": int, "kind": str, "after": int, "asked": str, "model": object, "command": object}


class QueueError(PlainError):
    """The queue's file, or a job in it, cannot be read."""


def write(path: Path, jobs: Iterable[Job]) -> None:
    """Write ``jobs``, without loads, which follow from the others. Raises :class:`OSError`."""
    rows = []
    for job in jobs:
        if job.kind is Kind.LOAD:
            continue
        command = None
        if keeps(job):
            with suppress(PlainError):  # A plug-in's undeclared types: read() says so.
                command = wire.packed(job.command)
        model = None if job.model is None else wire.packed(job.model)
        about = {"number": job.number, "kind": job.kind.name, "after": job.after, "asked": job.asked}
        rows.append({**about, "model": model, "command": command})
    files.write_atomically(path, wire.message("queue", rows, VERSION))


def read(path: Path) -> tuple[list[Job], list[str]]:
    """The jobs in ``path``, and what could not be restored, as sentences. Raises :class:`QueueError`."""
    try:
        found = wire.envelope(read_bytes(path, _LARGEST), _LARGEST)
        rows = wire.plain(found.payload)
        if (found.kind, found.number) != ("queue", VERSION) or not isinstance(rows, list):
            raise QueueError(f"it is {shown(found.kind)} of version {found.number}, not a queue of version {VERSION}")
    except (OSError, PlainError) as error:
        why = files.reason(error) if isinstance(error, OSError) else str(error).rstrip(".")
        raise QueueError(f"The jobs of the last session cannot be read from {path}: {why}.") from error
    jobs: list[Job] = []
    problems: list[str] = []
    for row in rows:
        try:
            job = _job(exact(row, "a job", _FIELDS, QueueError))
            if job.after and all(one.number != job.after for one in jobs):
                raise QueueError("what it needs is not restored")
            jobs.append(job)
        except PlainError as error:
            kind = row.get("kind") if isinstance(row, dict) else None
            title = Kind[kind].value if isinstance(kind, str) and kind in Kind.__members__ else "A job"
            problems.append(f"{title}: {str(error).rstrip('.')}.")
    return jobs, problems


def keeps(job: Job) -> bool:
    """Whether ``job`` can be begun once more by its command alone."""
    fills_a_panel = job.kind in (Kind.TRANSFER, Kind.TOKENS)
    return isinstance(job.command, _KEPT) and not fills_a_panel


def resumed(command: commands.Command) -> commands.Command:
    """``command`` to be begun once more: a training goes on from its checkpoint."""
    if isinstance(command, commands.Prepare) and isinstance(command.request, TrainingRequest):
        return replace(command, request=replace(command.request, begun_again=True))
    return command


def _job(row: Mapping[str, Any]) -> Job:
    if row["command"] is None:
        if row["kind"] == Kind.SERVER.name:
            raise QueueError("its finished loads are kept, and listed in Servers; measure the others again there")
        raise QueueError("its result is shown in a panel, not kept; ask for it again there")
    if row["kind"] not in Kind.__members__:
        raise QueueError(f"there is no job {shown(row['kind'])} here")
    command = wire.of(row["command"], commands.Command)
    model = None if row["model"] is None else wire.of(row["model"], commands.Command)
    if not isinstance(command, _KEPT) or not isinstance(model, commands.LoadModel | None):
        raise QueueError("its command is of another kind")
    return Job(row["number"], Kind[row["kind"]], resumed(command), model, row["after"], asked=row["asked"])
