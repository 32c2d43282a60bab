"""Preparation of techniques: jobs that they define."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from paretone.errors import SettingError
from paretone.models.base import ModelInfo
from paretone.session.commands import Prepare
from paretone.session.events import Prepared
from paretone.session.executor import Executor
from paretone.session.observers import PreparationObserver, RunningJob
from paretone.setting.plan import Part
from paretone.techniques.base import Job as Preparation
from paretone.techniques.base import JobTask
from paretone.techniques.registry import plug_in, technique


def prepare(command: Prepare, executor: Executor, job: RunningJob) -> Prepared:
    """Have the technique's own function do it."""
    preparation = preparation_for(command.technique, command.request)
    model = executor.model_for(command.request.setting) if preparation.on_loaded_model else None
    observer = PreparationObserver(job, command.technique, preparation.title)
    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    task = JobTask(command.request, observer, model, executor.machine, created)
    result = Part(preparation.run, owner=plug_in(command.technique)).make(task)
    info = _info(executor, command.request, observer) if preparation.finds_weights else None
    return Prepared(command.job, command.technique, result, info)


def preparation_for(name: str, request: object) -> Preparation:
    """The job of the technique called ``name`` that takes ``request``. Raises :class:`SettingError` without one."""
    declared, kind = technique(name), type(request)
    wanted = f"{kind.__module__}:{kind.__qualname__}"
    found = next((one for one in declared.jobs if one.request == wanted), None)
    if found is None:
        raise SettingError(f"{declared.title} has no preparation that takes a {kind.__qualname__}.")
    return found


def _info(executor: Executor, request: Any, observer: PreparationObserver) -> ModelInfo | None:
    """The loaded model, which looks for what there is now, where the preparation was for it."""
    model = executor.model
    if model is None or getattr(request, "model", model.info.id) != model.info.id:
        return None
    return model.look_for_weights(observer.check)
