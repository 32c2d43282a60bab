"""Preparing techniques: calibrations, measurements, trainings."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

from engine.errors import SettingError
from engine.models.base import flow_model
from engine.models.files.layer_importance import FILE, read_record
from engine.session.executor import Executor
from engine.session.messages import (
    Calibrate,
    CalibrationReady,
    LayersMeasured,
    MeasureImportance,
    MeasureTransfer,
    Training,
    TrainingDone,
    TransferMeasured,
)
from engine.session.observers import CalibrationJobObserver, Job, JobObserver, MeasuringObserver, TrainingObserver
from engine.techniques.ditreducio.preparation import calibrate_model
from engine.techniques.ditreducio.transfer import measure_transfer as transfer_of


def calibrate(command: Calibrate, executor: Executor, job: Job) -> CalibrationReady:
    """Calibrate a strategy table."""
    started = time.perf_counter()
    observer = CalibrationJobObserver(job)
    model = flow_model(executor.model_for(command.setting), "Calibrating")
    record = calibrate_model(model, command.utterances, command.setting, observer, command.combine)
    observer.check()
    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    record = replace(record, created=created, machine=executor.machine)
    first = command.utterances[0]
    operations = model.operations(first.text, first.voice, command.setting)
    return CalibrationReady(command.job, record, operations, time.perf_counter() - started)


def measure_transfer(command: MeasureTransfer, executor: Executor, job: Job) -> TransferMeasured:
    """Measure how well a strategy table serves other sentences."""
    started = time.perf_counter()
    observer = JobObserver(job)
    model = flow_model(executor.model_for(command.setting), "Measuring a strategy table")
    report = transfer_of(model, command.table, command.calibrated, command.unseen, command.setting, observer)
    observer.check()
    return TransferMeasured(command.job, report, time.perf_counter() - started)


def measure_importance(command: MeasureImportance, executor: Executor, job: Job) -> LayersMeasured:
    """Measure how much each layer of a language model matters."""
    from engine.models.families.language import LanguageSpeech
    from engine.models.files.language_weights import own_place, places_of
    from engine.techniques.spade.measuring import measure_layers

    model = executor.model_for(command.setting)
    if not isinstance(model, LanguageSpeech):
        raise SettingError(f"{model.info.title} is no language model: its layers are not measured like this.")
    observer = MeasuringObserver(job)
    path = own_place(model.info.id) / FILE
    earlier = read_record(places_of(model.info), model.info.fingerprint)
    record = measure_layers(model, command.utterances, command.setting, command.measures, observer, earlier)
    record.write(path)
    return LayersMeasured(command.job, record, str(path), model.look_for_weights(observer.check))


def train(command: Training, executor: Executor, job: Job) -> TrainingDone:
    """Train what a technique needs, or a bundled model."""
    # Imported on use: few sessions train.
    from engine.training import jobs

    observer = TrainingObserver(job)
    done = jobs.train(command, observer)
    model = executor.model
    if done.technique and model is not None and model.info.id == command.model:
        done = replace(done, info=model.look_for_weights(observer.check))
    return done
