"""Tables derived from a calibration for other thresholds, against calibrations at those."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.record import CALIBRATION, PRE_CALIBRATION, CalibrationRecord, Sentence, Trial
from tests.engine.techniques.ditreducio.sequential import LAYERS, STEPS, calibrate

THRESHOLDS = tuple(float(one) for one in np.geomspace(0.01, 1.0, 60))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("threshold", [0.02, 0.1, 0.4])
def test_a_derived_table_that_calls_itself_exact_is_what_a_calibration_there_gives(seed: int, threshold: float) -> None:
    record = calibrate(threshold, seed)
    exact = 0
    low, high = record.exact_interval
    near = [low + (high - low) * share for share in (0.01, 0.3, 0.99)] if np.isfinite(high) else [1.01 * low]
    for other in (*THRESHOLDS, *near):
        derived = record.derive(other)
        if derived.exact:
            again = calibrate(other, seed)
            assert derived.table.actions == again.table.actions
            assert [(one.layer, one.step, one.accepted) for one in record.trials] == [
                (one.layer, one.step, one.accepted) for one in again.trials
            ]
            assert derived.differs_at is None
            exact += 1
    assert exact >= len(near)


@pytest.mark.parametrize("seed", range(6))
def test_a_derived_table_that_is_not_exact_names_the_first_trial_that_a_calibration_there_decides_otherwise(
    seed: int,
) -> None:
    record = calibrate(0.1, seed)
    predicted = 0
    for other in THRESHOLDS:
        derived = record.derive(other)
        if derived.exact:
            continue
        predicted += 1
        # Up to the first difference both calibrations do and measure the same.
        pairs = zip(record.trials, calibrate(other, seed).trials, strict=False)
        index, first = next((index, mine) for index, (mine, theirs) in enumerate(pairs) if mine != theirs)
        assert derived.differs_at == first
        assert record.trials[index].accepted != (record.trials[index].error < (first.layer + 1) / LAYERS * other), (
            "the first difference is a decision, not an error"
        )
    assert predicted > 10


def test_some_predictions_are_wrong_so_that_calling_them_exact_would_be_a_lie() -> None:
    record = calibrate(0.1, 0)
    wrong = [one for one in THRESHOLDS if record.derive(one).table.actions != calibrate(one, 0).table.actions]
    assert wrong
    assert not any(record.derive(one).exact for one in wrong)


@pytest.mark.parametrize("seed", range(4))
def test_the_exact_interval_is_where_derived_tables_are_exact(seed: int) -> None:
    record = calibrate(0.1, seed)
    low, high = record.exact_interval
    assert low < record.threshold <= high
    for other in (*THRESHOLDS, low * 0.9999, low * 1.0001, high * 0.9999, high * 1.0001):
        assert record.derive(other).exact == (low < other <= high), other


def test_without_trials_every_threshold_is_exact_and_skips_nothing() -> None:
    record = replace(calibrate(0.1), trials=())
    assert record.exact_interval == (0.0, float("inf"))
    derived = record.derive(1.9)
    assert derived.exact
    assert derived.table.skipped_share == 0


def test_a_table_derived_at_its_own_threshold_is_the_recorded_one_and_says_so() -> None:
    record = calibrate(0.13)
    derived = record.derive(0.13)
    assert derived.table == record.table
    assert derived.table.origin == "calibrated at threshold 0.13"
    assert record.derive(0.5).table.origin == "predicted at threshold 0.5"


def test_little_is_skipped_at_a_small_threshold_and_almost_everything_at_a_large_one() -> None:
    record = calibrate(0.05, 1)
    assert record.derive(0.0).table.skipped_share == 0
    everything = (LAYERS * (STEPS - 1)) / (LAYERS * STEPS)
    assert record.derive(1e6).table.skipped_share == pytest.approx(everything)


def test_predicted_errors_of_one_step_add_up() -> None:
    def trial(layer: int, action: SkipAction, error: float, accepted: bool = False) -> Trial:
        return Trial(CALIBRATION, 2, layer, action, error, accepted)

    # Measured alone, every cell would pass 0.5; two together only where the bounds have grown with the layer.
    trials = tuple(
        trial(layer, action, error)
        for layer in range(LAYERS)
        for action, error in ((SkipAction.TS, 0.09 * (layer + 1)), (SkipAction.BS, 0.01))
    )
    record = replace(calibrate(0.0), trials=trials, knobs=Values(threshold=0.0))
    column = [record.derive(0.5).table.actions[layer][2] for layer in range(LAYERS)]
    # Bounds 0.1 … 0.5. Layer 1: 0.09 passes. Layer 2: 0.09 + 0.18 does not, 0.09 + 0.01 does. Layer 3: 0.1 + 0.27 does
    # not, 0.11 does. And so on.
    assert column == [SkipAction.TS, *[SkipAction.BS] * (LAYERS - 1)]
    # What was in force when a trial was measured is not counted twice: layer 2's 0.15 includes layer 1's 0.09.
    measured = (
        trial(0, SkipAction.TS, 0.09, accepted=True),
        trial(1, SkipAction.TS, 0.15),
        trial(1, SkipAction.BS, 0.14, accepted=True),
        trial(2, SkipAction.TS, 0.31),
        trial(2, SkipAction.BS, 0.31),
    )
    recorded = replace(record, trials=measured, knobs=Values(threshold=0.36))
    derived = recorded.derive(0.48)
    assert not derived.exact
    assert [row[2] for row in derived.table.actions][:3] == [SkipAction.TS, SkipAction.TS, SkipAction.NONE]


def test_normalised_errors_are_divided_by_the_layers_share_and_the_later_phase_wins() -> None:
    record = calibrate(0.1)
    trials = (
        Trial(PRE_CALIBRATION, 2, 0, SkipAction.TS, 0.5, False),
        Trial(CALIBRATION, 2, 0, SkipAction.TS, 0.3, False),
        Trial(CALIBRATION, 2, 0, SkipAction.BS, 0.2, False),
        Trial(CALIBRATION, 3, LAYERS - 1, SkipAction.TS, 0.4, False),
    )
    record = replace(record, trials=trials)
    errors = record.normalised_errors(SkipAction.TS)
    assert errors.shape == (LAYERS, STEPS)
    assert errors[0, 2] == pytest.approx(0.3 * LAYERS)
    assert errors[LAYERS - 1, 3] == pytest.approx(0.4)
    assert np.isnan(errors).sum() == LAYERS * STEPS - 2
    assert record.normalised_errors(SkipAction.BS)[0, 2] == pytest.approx(0.2 * LAYERS)


def test_cells_without_a_measured_branch_skip_are_counted() -> None:
    record = calibrate(0.4, 2)
    derived = record.derive(0.001)
    tried = {(one.layer, one.step) for one in record.trials}
    measured = {(one.layer, one.step) for one in record.trials if one.action is SkipAction.BS}
    assert derived.table.skipped_share == 0
    assert derived.unmeasured == len(tried - measured) > 0
    assert record.derive(0.4).unmeasured == 0


def test_marked_cells_are_those_from_the_cut_on() -> None:
    record = calibrate(0.1)
    assert record.marked.sum() == pytest.approx(0.2 * LAYERS * STEPS)
    pre = {(one.layer, one.step) for one in record.trials if one.phase == PRE_CALIBRATION}
    assert pre == {(int(layer), int(step)) for layer, step in np.argwhere(record.marked) if step}


def test_fingerprints_tell_calibrations_apart() -> None:
    record = calibrate(0.1)
    others: list[CalibrationRecord] = [
        replace(record, sentences=(Sentence("Another sentence.", "anna"),)),
        replace(record, sentences=(Sentence("A sentence.", "bdl"),)),
        replace(record, combine="mean"),
        replace(record, seed=9),
        replace(record, created="2026-01-01T00:00:00Z"),
        replace(record, knobs=record.knobs.replace(marked=20.0)),
        calibrate(0.3),
    ]
    prints = {one.fingerprint for one in (record, *others)}
    assert len(prints) == 1 + len(others)
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in prints)
    assert calibrate(0.1).fingerprint == record.fingerprint


def test_records_can_be_pickled() -> None:
    record = calibrate(0.1)
    again = pickle.loads(pickle.dumps(record))
    assert again == record
    np.testing.assert_array_equal(again.similarities, record.similarities)
