"""Calibrating for the end of the trajectory, on random models: what is measured, what is chosen, and how it stops."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from paretone.errors import Cancelled
from paretone.sampling.actions import SkipAction
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.evaluating import Planned
from paretone.setting.knobs import Values
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio.calibration import calibrate
from paretone.techniques.ditreducio.end_calibration import Change, EndPath, calibrate_end, changes_of
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.record import END
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.ditreducio.trajectory import Work
from tests.engine.models.f5.plain_dit import small_dit
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.engine.techniques.ditreducio.test_calibration import FRAMES, STEPS, calibration_target, knobs

NONE, TS, BS = SkipAction.NONE, SkipAction.TS, SkipAction.BS
LAYERS = 4
ROWS = (
    (NONE, NONE, TS, TS, BS, NONE),
    (NONE, BS, BS, TS, NONE, TS),
    (NONE, NONE, BS, NONE, TS, TS),
    (NONE, TS, NONE, NONE, NONE, NONE),
)
DIT = small_dit(depth=LAYERS)
COUNTS = DIT.operations(FRAMES, True)


def chosen(**changes: object) -> Values:
    return knobs(objective=ditreducio.END, **changes)


@torch.inference_mode()
def ended(target: CalibrationTarget, rows: tuple, given: Values) -> Tensor:
    """The end as synthesis reaches it."""
    table = StrategyTable(target.compatibility, rows, str(given["branch_skip"]), "", str(given["temporal"]))
    evaluator, state = Planned(target.backbone, skip_plan(table), LAYERS), target.noise
    for step in range(target.steps):
        velocities = evaluator.velocities(state, step, target.run)
        state = target.follow(state, target.guide(velocities), step)
    return state[0, target.prompt_frames :].flatten()


def path(target: CalibrationTarget, given: Values) -> EndPath:
    return EndPath(target, given, Work(Recorder(), 10**9))


@pytest.mark.parametrize("temporal", ["reuse", "forecast"])
@pytest.mark.parametrize("branch_skip", ["both", "attention"])
@torch.inference_mode()
def test_the_end_is_that_of_synthesis(temporal: str, branch_skip: str) -> None:
    target, given = calibration_target(DIT), chosen(temporal=temporal, branch_skip=branch_skip)
    measured = path(target, given)
    assert torch.allclose(measured.goal, ended(target, ((NONE,) * STEPS,) * LAYERS, given), atol=1e-5)
    assert torch.allclose(measured.walk(ROWS, {})[0], ended(target, ROWS, given), atol=1e-5)


@pytest.mark.parametrize("temporal", ["reuse", "forecast"])
@torch.inference_mode()
def test_a_change_of_the_last_step_moves_the_end_exactly_as_measured(temporal: str) -> None:
    target, given, last = calibration_target(DIT), chosen(temporal=temporal), STEPS - 1
    measured = path(target, given)
    changes = [one for one in changes_of(ROWS, (TS, BS), restoring=True) if one.step == last]
    assert {one.action for one in changes} == {NONE, TS, BS}
    before, moved = measured.walk(ROWS, {last: changes})
    for one in changes:
        rows = [list(row) for row in ROWS]
        rows[one.layer][last] = one.action
        expected = ended(target, tuple(map(tuple, rows)), given) - before
        assert torch.allclose(moved[one], expected, atol=1e-5), one


@torch.inference_mode()
def test_later_skips_of_the_layer_count() -> None:
    """Without gains, movements at both steps add up: the state after each is compared from the same state before."""
    target, given = calibration_target(DIT), chosen()
    change = Change(2, 4, NONE)  # It skips at step 4 and reuses the same output at step 5.
    measured = path(target, given)
    _, moved = measured.walk(ROWS, {4: [change]})
    alone = [list(row) for row in ROWS]
    alone[2][5] = NONE
    _, once = measured.walk(alone, {4: [change]})
    assert (moved[change] - once[change]).norm() > 0.05 * once[change].norm()


@torch.inference_mode()
def test_gains_end_at_one_and_weigh_movements() -> None:
    target = calibration_target(DIT)
    measured = path(target, chosen())
    change = Change(1, 2, TS)
    plain = [[NONE] * STEPS for _ in range(LAYERS)]
    unweighed = measured.walk(plain, {2: [change]})[1][change]
    measured.find_gains()
    assert measured._gains[-1] == pytest.approx(1) and all(one > 0 for one in measured._gains)
    weighed = measured.walk(plain, {2: [change]})[1][change]
    assert torch.allclose(weighed, unweighed * measured._gains[2], rtol=1e-4)


def test_only_what_saves_is_a_change_unless_cells_are_restored() -> None:
    saving, both = (set(changes_of(ROWS, (TS, BS), restoring)) for restoring in (False, True))
    assert Change(0, 4, TS) in saving and Change(0, 4, NONE) not in saving and Change(0, 2, BS) not in saving
    assert {Change(0, 4, NONE), Change(0, 2, BS), Change(0, 2, NONE)} <= both
    assert all(one.step for one in both)


@pytest.mark.parametrize("budget", [75.0, 50.0])
@torch.inference_mode()
def test_it_keeps_the_budget_and_ends_nearer_than_the_published_calibration(budget: float) -> None:
    target, observer = calibration_target(DIT), Recorder()
    record = calibrate_end([target], COUNTS, chosen(operations=budget), observer)
    cell = 2 * (COUNTS.attention + COUNTS.feed_forward) / (STEPS * COUNTS.evaluation)
    assert budget / 100 - cell < record.table.ops_ratio(COUNTS) <= budget / 100 + 1e-9
    assert record.is_for_end and record.trials == tuple(observer.trials)
    assert observer.progressed[-1][0] == observer.progressed[-1][1]
    published = calibrate([target], knobs(threshold=0.02), Recorder())
    thresholds = [one / 200 for one in range(1, 400)]
    same = next(t for t in map(published.derive, thresholds) if t.table.ops_ratio(COUNTS) <= budget / 100).table
    goal = ended(target, ((NONE,) * STEPS,) * LAYERS, chosen())
    ours, theirs = ((ended(target, one.actions, chosen()) - goal).norm() for one in (record.table, same))
    assert ours < 0.9 * theirs


@torch.inference_mode()
def test_the_table_is_the_same_at_every_threshold() -> None:
    record = calibrate_end([calibration_target(DIT)], COUNTS, chosen(), Recorder(), rounds=2, exchanges=1)
    assert {trial.phase for trial in record.trials} == {END}
    derived = record.derive(1.7)
    assert derived.exact and derived.table == record.table and record.exact_interval == (0.0, float("inf"))
    assert "for the end at 50 %" in record.table.origin


@torch.inference_mode()
def test_several_sentences_and_one_branch() -> None:
    targets = [calibration_target(DIT, guidance=0.0, seed=seed) for seed in (0, 1)]
    one = replace(COUNTS, branches=1)
    record = calibrate_end(targets, one, chosen(), Recorder(), rounds=2, exchanges=0)
    assert record.table.count(BS) == 0 < record.table.count(TS)
    assert "on 2 sentences" in record.table.origin


@torch.inference_mode()
def test_it_can_be_cancelled() -> None:
    with pytest.raises(Cancelled):
        calibrate_end([calibration_target(DIT)], COUNTS, chosen(), Recorder(cancel_after=40))


def test_records_of_before_the_objective_are_found_again() -> None:
    older = Values({name: value for name, value in knobs().items() if name not in ("objective", "operations")})
    assert ditreducio.calibrates_alike(older, knobs(threshold=0.3, operations=70.0))
    assert not ditreducio.calibrates_alike(older, chosen())
    assert ditreducio.calibrates_alike(chosen(threshold=0.3, metric="relative"), chosen())
    assert not ditreducio.calibrates_alike(chosen(operations=70.0), chosen())
