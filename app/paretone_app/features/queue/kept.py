"""The queue's file, so that jobs survive a restart. Commands are kept as data and read with the types that their
classes declare. Artefacts are kept by fingerprint only: their stores have them."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from paretone import files
from paretone.errors import PlainError, SettingError
from paretone.fields import exact, is_of
from paretone.reading import read_json, shown
from paretone.session import commands
from paretone.setting.knobs import Values
from paretone.setting.plan import imported
from paretone.setting.setting import Artefact, Setting
from paretone.techniques import technique
from paretone.training.requests import TrainingRequest
from paretone_app.state.jobs import Job, Kind

VERSION = 1
_CLASSES = {
    one.__name__: one
    for one in (
        commands.Synthesise,
        commands.MakeTake,
        commands.TimeAgain,
        commands.Prepare,
        commands.RunStudy,
        commands.VerifyStudy,
        commands.DownloadModel,
        commands.ExportWeights,
    )
}
"""Commands with results that are kept in files. Others fill a panel that a new window has yet to fill."""
_PANELS = (Kind.TRANSFER, Kind.TOKENS)
"""Preparations whose results are shown, not kept."""
_CHECKPOINT = "checkpoint.pt"
_FIELDS = {"number": int, "kind": str, "after": int, "asked": str, "title": str, "model": object, "command": object}


class QueueError(PlainError):
    """The queue's file, or a job in it, cannot be read."""


def write(path: Path, jobs: Iterable[Job]) -> None:
    """Write ``jobs``, without loads, which follow from the others. Raises :class:`OSError`."""
    data = {"version": VERSION, "jobs": [_job(one) for one in jobs if one.kind is not Kind.LOAD]}
    files.write_atomically(path, json.dumps(data, ensure_ascii=False, allow_nan=False).encode())


def read(path: Path) -> tuple[list[Job], list[str]]:
    """The jobs in ``path``, and what could not be restored, as sentences. Raises :class:`QueueError`."""
    try:
        data = read_json(path)
        version = data.get("version") if isinstance(data, dict) else None
        if version != VERSION:
            raise QueueError(f"it has version {shown(version)}; this Paretone reads version {VERSION}")
        rows = exact(data, "the queue", {"version": int, "jobs": list}, QueueError)["jobs"]
    except (OSError, ValueError, QueueError) as error:
        why = files.reason(error) if isinstance(error, OSError) else str(error).rstrip(".")
        raise QueueError(f"The jobs of the last session cannot be read from {path}: {why}.") from error
    jobs: list[Job] = []
    problems: list[str] = []
    for row in rows:
        title = row["title"] if isinstance(row, dict) and isinstance(row.get("title"), str) else "A job"
        try:
            job = _read_job(row)
            if job.after and all(one.number != job.after for one in jobs):
                raise QueueError("what it needs was not kept")
            jobs.append(job)
        except (PlainError, ValueError, TypeError, ImportError, AttributeError) as error:
            problems.append(f"{title}: {str(error).rstrip('.')}.")
    return jobs, problems


def _job(job: Job) -> dict[str, object]:
    command: dict[str, object] | None = None
    if type(job.command).__name__ in _CLASSES and job.kind not in _PANELS:
        command = {"class": type(job.command).__name__, **_plain(job.command)}
        if isinstance(job.command, commands.Prepare):
            kind = type(job.command.request)
            command["prepares"] = f"{kind.__module__}:{kind.__qualname__}"
    try:
        json.dumps(command, allow_nan=False)
    except (TypeError, ValueError):
        command = None  # A plug-in's request with other things than data.
    model = None if job.model is None else _plain(job.model)
    title = job.kind.value
    about = {"number": job.number, "kind": job.kind.name, "after": job.after, "asked": job.asked, "title": title}
    return {**about, "model": model, "command": command}


def _plain(value: Any) -> Any:
    """``value`` as JSON."""
    if isinstance(value, Setting):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        names = (one.name for one in fields(value) if one.name not in ("job", "artefacts"))
        return {name: _plain(getattr(value, name)) for name in names}
    return str(value) if isinstance(value, Path) else value


def _read_job(row: object) -> Job:
    data = exact(row, "a job", _FIELDS, QueueError)
    if data["command"] is None:
        raise QueueError("its result belongs to a panel; ask for it again there")
    if data["kind"] not in Kind.__members__:
        raise QueueError(f"there is no job {shown(data['kind'])}")
    model = None if data["model"] is None else _typed(commands.LoadModel, data["model"], "model")
    kind, numbers = Kind[data["kind"]], (data["number"], data["after"])
    return Job(numbers[0], kind, _command(data["command"]), model, numbers[1], asked=data["asked"])


def _command(data: object) -> commands.Command:
    if not isinstance(data, dict) or data.get("class") not in _CLASSES:
        raise QueueError("its command is unknown to this Paretone")
    kind, rest = _CLASSES[data["class"]], {name: one for name, one in data.items() if name != "class"}
    if kind is not commands.Prepare:
        made: commands.Command = _typed(kind, rest, "command")
        return made
    parts = exact(rest, "command", {"technique": str, "request": dict, "prepares": str}, QueueError)
    declared = (one for one in technique(parts["technique"]).jobs if one.request == parts["prepares"])
    preparation = next(declared, None)
    if preparation is None:
        raise QueueError("its technique prepares other things in this Paretone")
    request = _typed(imported(preparation.request), parts["request"], "request")
    if isinstance(request, TrainingRequest) and (Path(request.work) / _CHECKPOINT).is_file():
        request = replace(request, resume=True)
    return commands.Prepare(0, parts["technique"], request)


def _typed(kind: Any, data: Any, where: str) -> Any:
    """``data`` as a value of the declared type ``kind``. Raises :class:`QueueError`."""
    if kind is Setting:
        return Setting.from_json(data)
    if kind is Values:
        return Values(_mapping(data, where))
    if is_dataclass(kind):
        hints, known = get_type_hints(kind), {one.name: one for one in fields(kind)}
        unknown = sorted(set(_mapping(data, where)) - set(known))
        if unknown:
            raise QueueError(f"{where} has an unknown field {shown(unknown[0])}")
        given = {name: _typed(hints[name], one, f"{where}.{name}") for name, one in data.items()}
        missing = [name for name, one in known.items() if name not in given and name != "job" and _needed(one)]
        if missing:
            raise QueueError(f"{where} lacks the field {shown(missing[0])}")
        return kind(**({"job": 0} if "job" in known else {}), **given)
    origin, of = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        wanted = [one for one in of if one is not type(None)]
        return None if data is None and len(wanted) < len(of) else _typed(wanted[0], data, where)
    if origin is tuple and isinstance(data, list):
        kinds = [of[0]] * len(data) if of[-1:] == (...,) else list(of)
        return tuple(_typed(one, value, where) for one, value in zip(kinds, data, strict=True))
    if kind in (str, bool, int, float) and is_of(data, int | float if kind is float else kind):
        return data
    raise QueueError(f"{where} cannot be {shown(data)}")


def _needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _mapping(data: object, where: str) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise QueueError(f"{where} must be an object, not {shown(data)}")
    return data


def with_artefacts(job: Job, find: Any) -> Job:
    """``job`` with the artefacts that its setting names. Raises :class:`SettingError` if one is gone."""
    command = job.command
    if not isinstance(command, commands.Synthesise):
        return job
    artefacts: list[Artefact] = []
    for entry in command.setting.techniques:
        source, found = find(entry.technique), None
        if source is not None and entry.artefact:
            found = source.find(entry)
            if found is None:
                raise SettingError(f"What {technique(entry.technique).title} had prepared for it is gone")
            artefacts.append(found)
    return replace(job, command=replace(command, artefacts=tuple(artefacts)))
