"""Transfer of a strategy table, calibrated on few sentences, to other texts, lengths and voices.

Every sentence is taken through the steps twice from the same noise: in full, and under the table. On the way every skip
of the table is measured as a calibration would measure it, with the skips of the layers below in force, except that
nothing is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from paretone.errors import ProfileError
from paretone.measure.fidelity import log_mel_distance
from paretone.models.base import SpeechModel, Utterance, flow_model
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio.metrics import mean_absolute_error
from paretone.techniques.ditreducio.preparation import knobs_of, prepared, scripts_of
from paretone.techniques.ditreducio.record import Sentence
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.ditreducio.trajectory import Trajectory, Work
from paretone.techniques.ditreducio.transfer_report import SentenceTransfer, TransferReport


def measure_transfer(
    model: SpeechModel,
    table: StrategyTable,
    calibrated: Sequence[Utterance],
    unseen: Sequence[Utterance],
    setting: Setting,
    observer: Observer,
) -> TransferReport:
    """Measure ``table`` on the first passages of ``unseen`` and, to compare, of those it was ``calibrated`` on.

    Errors are measured as DiTReducio's knobs in ``setting`` say, and compared with its threshold. Raises
    :class:`ProfileError` for a table of another model or sampling, and :class:`paretone.errors.Cancelled`.
    """
    knobs = knobs_of(setting).replace(branch_skip=table.branch_skip, temporal=table.temporal)
    mismatch = table.compatibility.mismatch(compatibility_of(flow_model(model, "A strategy table").info, setting))
    if mismatch:
        raise ProfileError(f"The strategy table cannot be measured here: {mismatch}.")
    skips = sum(
        table.layers - layer
        for layer, row in enumerate(table.actions)
        for action in row
        if action is not SkipAction.NONE
    )
    number = len(calibrated) + len(unseen)
    work = Work(observer, number * (2 * table.layers * table.steps + skips))
    measured: list[SentenceTransfer] = []
    # One after the other: a long list shall not fill the memory.
    for utterance in (*calibrated, *unseen):
        observer.status(f"Sentence {len(measured) + 1} of {number}: {utterance.text}")
        (target,), (sentence,) = prepared(model, scripts_of(model, [utterance], setting))
        with torch.inference_mode():
            measured.append(transfer(target, sentence, table, knobs, work))
    return TransferReport(
        table.fingerprint,
        float(knobs["threshold"]),
        str(knobs["metric"]),
        tuple(measured[: len(calibrated)]),
        tuple(measured[len(calibrated) :]),
    )


def transfer(
    target: CalibrationTarget, sentence: Sentence, table: StrategyTable, knobs: Values, work: Work
) -> SentenceTransfer:
    """Transfer of ``table`` to one sentence: ``target`` runs, ``sentence`` describes it."""
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
