"""DiTReducio's preparations as jobs: see :class:`paretone.techniques.base.Job`."""

from __future__ import annotations

import time
from dataclasses import replace

from paretone.models.base import flow_model
from paretone.techniques.base import JobTask
from paretone.techniques.ditreducio.preparation import calibrate_scripts, scripts_of
from paretone.techniques.ditreducio.requests import Calibrated, TransferMeasured
from paretone.techniques.ditreducio.transfer import measure_transfer


def calibrate(task: JobTask) -> Calibrated:
    """Do a :class:`paretone.techniques.ditreducio.requests.CalibrationRequest`."""
    started, request = time.perf_counter(), task.request
    model = flow_model(task.loaded, "Calibrating")
    scripts = scripts_of(model, request.utterances, request.setting)
    record = calibrate_scripts(model, scripts, request.setting, task.observer, request.combine)
    task.observer.check()
    record = replace(record, created=task.created, machine=task.machine)
    return Calibrated(record, model.operations(scripts[0]), time.perf_counter() - started)


def transfer(task: JobTask) -> TransferMeasured:
    """Do a :class:`paretone.techniques.ditreducio.requests.TransferRequest`."""
    started, request = time.perf_counter(), task.request
    model = flow_model(task.loaded, "Measuring a strategy table")
    report = measure_transfer(model, request.table, request.calibrated, request.unseen, request.setting, task.observer)
    task.observer.check()
    return TransferMeasured(report, time.perf_counter() - started)
