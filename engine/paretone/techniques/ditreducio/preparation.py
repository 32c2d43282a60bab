"""DiTReducio's preparations with a loaded model: calibration, and transfer of a table to other sentences."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from paretone.errors import ProfileError
from paretone.measure.fidelity import log_mel_distance
from paretone.models.base import Script, SpeechModel, Utterance, flow_model
from paretone.observer import Observer, Work
from paretone.sampling.actions import SkipAction
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.techniques import compatibility_of, ditreducio, resolve
from paretone.techniques.base import JobTask, require_euler
from paretone.techniques.ditreducio.calibration import calibrate, check_together
from paretone.techniques.ditreducio.end_calibration import calibrate_end
from paretone.techniques.ditreducio.record import (
    Calibrated,
    CalibrationRecord,
    Sentence,
    SentenceTransfer,
    TransferReport,
)
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.ditreducio.trajectory import Trajectory, mean_absolute_error
from paretone.techniques.resolving import knobs_under


def calibrate_model(
    model: SpeechModel, utterances: Sequence[Utterance], setting: Setting, observer: Observer, combine: str = "worst"
) -> CalibrationRecord:
    """Calibrate on the first passages of all utterances together, with the knobs in ``setting``. ``combine`` is one of
    :data:`paretone.techniques.ditreducio.COMBINATIONS`; a calibration for the end of the trajectory always uses the
    mean. Raises :class:`SettingError` if ``setting`` rules DiTReducio out, and :class:`paretone.errors.Cancelled`."""
    return calibrate_scripts(model, scripts_of(model, utterances, setting), setting, observer, combine)


def calibrate_scripts(
    model: SpeechModel, scripts: Sequence[Script], setting: Setting, observer: Observer, combine: str = "worst"
) -> CalibrationRecord:
    """As :func:`calibrate_model`, for utterances already read."""
    knobs = knobs_of(setting)
    targets, sentences = prepared(model, scripts)
    with torch.inference_mode():
        if knobs["objective"] == ditreducio.END:
            check_together(targets)
            record = calibrate_end(targets, flow_model(model, "Calibrating").operations(scripts[0]), knobs, observer)
        else:
            record = calibrate(targets, knobs, observer, combine)
    return replace(record, sentences=sentences, seed=setting.seed)


def knobs_of(setting: Setting) -> Values:
    """DiTReducio's knobs under ``setting``, with defaults. Raises :class:`SettingError`."""
    require_euler(setting.options, ditreducio.ONE_COLUMN)
    return knobs_under(setting, ditreducio.NAME)


def scripts_of(model: SpeechModel, utterances: Sequence[Utterance], setting: Setting) -> list[Script]:
    """Read ``utterances`` for calibration under ``setting``. Raises :class:`SettingError` if it rules that out."""
    knobs_of(setting)
    plan = resolve(model.info, setting, prepared=False)
    return [model.script(one.text, one.voice, plan) for one in utterances]


def prepared(model: SpeechModel, scripts: Sequence[Script]) -> tuple[list[CalibrationTarget], tuple[Sentence, ...]]:
    """Calibration target and record entry of the first passage of each script."""
    flow, targets, sentences = flow_model(model, "Calibrating"), [], []
    for one in scripts:
        target = flow.calibration_target(one)
        frames = target.noise.shape[1] - target.prompt_frames
        targets.append(target)
        sentences.append(Sentence(one.passages[0].text, one.voice.id, frames, target.prompt_frames))
    return targets, tuple(sentences)


def measure_transfer(
    model: SpeechModel,
    table: StrategyTable,
    calibrated: Sequence[Utterance],
    unseen: Sequence[Utterance],
    setting: Setting,
    observer: Observer,
) -> TransferReport:
    """Measure ``table`` on the first passages of ``unseen`` and, for comparison, of the ``calibrated`` utterances.
    Errors follow DiTReducio's knobs in ``setting`` and are compared with its threshold. Raises :class:`ProfileError`
    for a table of another model or sampling, and :class:`paretone.errors.Cancelled`."""
    knobs = knobs_of(setting).replace(branch_skip=table.branch_skip, temporal=table.temporal)
    mismatch = table.compatibility.mismatch(
        compatibility_of(flow_model(model, "A strategy table").info, setting, of_flow=True)
    )
    if mismatch:
        raise ProfileError(f"The strategy table cannot be measured here: {mismatch}.")
    rows = enumerate(table.actions)
    skips = sum((table.layers - layer) * (table.steps - row.count(SkipAction.NONE)) for layer, row in rows)
    number = len(calibrated) + len(unseen)
    work = Work(observer, number * (2 * table.layers * table.steps + skips))
    measured: list[SentenceTransfer] = []
    # One after the other, to limit memory for long lists.
    for utterance in (*calibrated, *unseen):
        observer.status(f"Sentence {len(measured) + 1} of {number}: {utterance.text}")
        (target,), (sentence,) = prepared(model, scripts_of(model, [utterance], setting))
        with torch.inference_mode():
            measured.append(transfer(target, sentence, table, knobs, work))
    own, new = tuple(measured[: len(calibrated)]), tuple(measured[len(calibrated) :])
    return TransferReport(table.fingerprint, float(knobs["threshold"]), str(knobs["metric"]), own, new)


def transfer(
    target: CalibrationTarget, sentence: Sentence, table: StrategyTable, knobs: Values, work: Work
) -> SentenceTransfer:
    full, skipping = (Trajectory(target, knobs, work) for _ in range(2))
    nothing = (SkipAction.NONE,) * table.layers
    velocity_errors: list[float] = []
    skips = exceeding = 0
    for step in range(table.steps):
        full.begin(step, nothing)
        skipping.begin(step, nothing)
        for layer, action in enumerate(table.at(step)):
            if action is SkipAction.BS and target.branches == 1:
                action = SkipAction.NONE
            if action is not SkipAction.NONE:
                outcome = next(skipping.outcomes(layer, (action,)))
                skips += 1
                exceeding += skipping.error(outcome) >= (layer + 1) / table.layers * float(knobs["threshold"])
                skipping.accept(layer, outcome)
                work.done(table.layers - layer)
            skipping.settle(layer, action)
        velocity_errors.append(mean_absolute_error(full.velocity, skipping.velocity))
        full.finish()
        skipping.finish()
    whole, under_table = (one.state[0, target.prompt_frames :].float().cpu().numpy() for one in (full, skipping))
    distance = log_mel_distance(whole, under_table)
    return SentenceTransfer(sentence, tuple(velocity_errors), distance, exceeding / skips if skips else 0.0)


def carry_out_calibration(task: JobTask) -> Calibrated:
    started, request = time.perf_counter(), task.request
    model = flow_model(task.loaded, "Calibrating")
    # Reading may take seconds: some models speak to the flow first, or align a voice.
    scripts = scripts_of(model, request.utterances, request.setting)
    record = calibrate_scripts(model, scripts, request.setting, task.observer, request.combine)
    task.observer.check()
    record = replace(record, created=task.created, machine=task.machine)
    return Calibrated(record, model.operations(scripts[0]), time.perf_counter() - started)


def carry_out_transfer(task: JobTask) -> TransferReport:
    request = task.request
    model = flow_model(task.loaded, "Measuring a strategy table")
    report = measure_transfer(model, request.table, request.calibrated, request.unseen, request.setting, task.observer)
    task.observer.check()
    return report
