"""The calibration against the published algorithm on random models, its reports, and how it is cancelled."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.errors import Cancelled, PlainError, SettingError
from paretone.models.f5.dit import DiT
from paretone.observer import Work
from paretone.sampling.actions import SkipAction
from paretone.sampling.calibration_target import CalibrationTarget, diagonal_similarity
from paretone.sampling.flow import Planned, euler_steps, sampling_grid
from paretone.sampling.guidance import guided_velocity
from paretone.sampling.skipping import LayerMemory
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values, defaults
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio import COMBINATIONS, TECHNIQUE
from paretone.techniques.ditreducio.calibration import calibrate
from paretone.techniques.ditreducio.end_calibration import EndPath, calibrate_end, changes_of
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.record import CALIBRATION, END, PRE_CALIBRATION, Trial
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.ditreducio.trajectory import mean_absolute_error
from tests.engine.models.f5.plain_dit import small_dit
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.peers.ditreducio_algorithm import layer_plan, published_calibration
from tests.workload import crossed, workload

STEPS, FRAMES = 6, 23
THRESHOLDS = (0.2, 0.6, 0.05)
WAYS = (("mae", "branches", "both", 2.0), ("relative", "guided", "attention", 1.0), ("mae", "branches", "both", 0.0))
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


def calibration_target(dit: DiT, guidance: float = 2.0, seed: int = 0, frames: int = FRAMES) -> CalibrationTarget:
    generator = torch.Generator().manual_seed(seed)
    prompt = torch.randn(1, frames, 20, generator=generator)
    prompt[:, 9:] = 0
    ids = torch.randint(0, 20, (1, 12), generator=generator)
    times = sampling_grid(STEPS, "uniform")
    run = dit.begin(prompt, ids, times[:-1], guidance > 0)
    noise = torch.randn(1, frames, 20, generator=generator)
    compatibility = Compatibility("small", "", "small", Values(steps=STEPS, spacing="uniform", guidance=guidance))
    guide, follow = (lambda velocities: guided_velocity(velocities, guidance)), euler_steps(times)
    return CalibrationTarget(dit, run, noise, times, guide, follow, run.branches, compatibility, 9)


def knobs(**changes: object) -> Values:
    return defaults(TECHNIQUE.knobs).replace(**changes)


@pytest.mark.parametrize(("threshold", "way", "side_by_side"), crossed(THRESHOLDS, WAYS, [False, True]))
def test_table_is_the_published_ones(threshold: float, way: tuple[str, str, str, float], side_by_side: bool) -> None:
    metric, compare, branch_skip, guidance = way
    prepared = calibration_target(small_dit(depth=4), guidance)
    chosen = knobs(threshold=threshold, metric=metric, compare=compare, branch_skip=branch_skip, marked=25.0)
    record = calibrate([prepared], chosen, Recorder(), side_by_side=side_by_side)
    assert record.table.actions == published_calibration(prepared, chosen)
    assert all(row[0] is SkipAction.NONE for row in record.table.actions)
    if guidance == 0:
        assert record.table.count(SkipAction.BS) == 0, "one branch has nothing to share"
    elif threshold == 0.2:
        wanted = list(SkipAction) if metric == "mae" else [SkipAction.NONE, SkipAction.BS]
        assert all(record.table.count(action) for action in wanted), "the table is no trivial one"


@pytest.mark.parametrize("combine", workload(COMBINATIONS, COMBINATIONS[:1]))
def test_two_of_the_same_sentence_are_one(combine: str) -> None:
    dit, chosen = small_dit(depth=4), knobs(threshold=0.2, marked=25.0)
    alone = calibrate([calibration_target(dit)], chosen, Recorder(), combine)
    twice = calibrate([calibration_target(dit), calibration_target(dit)], chosen, Recorder(), combine)
    assert twice.table.actions == alone.table.actions and np.array_equal(twice.similarities, alone.similarities)
    assert [replace(trial, errors=()) for trial in twice.trials] == list(alone.trials)
    assert all(trial.errors == (trial.error,) * 2 for trial in twice.trials)
    assert all(trial.errors == () for trial in alone.trials)


@pytest.mark.parametrize(
    ("branch_skip", "combine", "side_by_side"), crossed(["both", "attention"], COMBINATIONS, [True, False])
)
def test_every_sentence_is_measured_on_its_own_trajectory(combine: str, branch_skip: str, side_by_side: bool) -> None:
    """Sentences of three lengths: each error is that of whole evaluations of that sentence, as decided for all."""
    dit, chosen = small_dit(depth=4), knobs(threshold=0.2, marked=25.0, branch_skip=branch_skip)
    targets = [calibration_target(dit, seed=seed, frames=frames) for seed, frames in enumerate((23, 12, 31))]
    record = calibrate(targets, chosen, Recorder(), combine, side_by_side)
    combined = {"worst": max, "mean": lambda errors: sum(errors) / 3}[combine]
    for trial in record.trials:
        assert trial.error == pytest.approx(combined(trial.errors))
        assert trial.accepted == (trial.error < (trial.layer + 1) / 4 * 0.2)
    for number, one in enumerate(targets):
        expected = whole_evaluations(one, record.trials, branch_skip)
        assert [trial.errors[number] for trial in record.trials] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    decided = {(trial.layer, trial.step): trial.action for trial in record.trials if trial.accepted}
    for layer, row in enumerate(record.table.actions):
        assert row == tuple(decided.get((layer, step), SkipAction.NONE) for step in range(STEPS))
    assert record.table.origin == f"calibrated at threshold 0.2 on the {combine} error of 3 sentences"
    assert {len(set(trial.errors)) for trial in record.trials} == {3}


def whole_evaluations(one: CalibrationTarget, trials: Sequence[Trial], branch_skip: str) -> list[float]:
    """The errors of ``trials`` on one sentence, each measured by evaluating the whole backbone."""

    def evaluate(actions: list[SkipAction], state: Tensor, step: int, memory: list[LayerMemory], keep: bool) -> Tensor:
        plans = [layer_plan(action, branch_skip, keep) for action in actions]
        return one.backbone.velocity(state, step, one.run, plans, memory)

    errors = []
    pre_calibrated = {(one.layer, one.step) for one in trials if one.phase == PRE_CALIBRATION and one.accepted}
    for phase in (PRE_CALIBRATION, CALIBRATION):
        memory, state = [LayerMemory() for _ in range(4)], one.noise
        for step in range(STEPS):
            given = pre_calibrated if phase == CALIBRATION else set()
            actions = [SkipAction.TS if (layer, step) in given else SkipAction.NONE for layer in range(4)]
            output = evaluate(actions, state, step, memory, keep=False)
            for trial in trials:
                if (trial.phase, trial.step) != (phase, step):
                    continue
                tried = [*actions[: trial.layer], trial.action, *actions[trial.layer + 1 :]]
                errors.append(mean_absolute_error(output, evaluate(tried, state, step, memory, keep=False)))
                actions = tried if trial.accepted else actions
            state = one.follow(state, one.guide(evaluate(actions, state, step, memory, keep=True)), step)
    return errors


def test_sentences_that_do_not_belong_together_and_models_without_numbers_are_refused() -> None:
    dit = small_dit(depth=4)
    with pytest.raises(SettingError, match=r"1 and 3 cannot be calibrated together.*guidance strength 2.0, but 1.0"):
        calibrate([calibration_target(dit, guidance) for guidance in (2.0, 2.0, 1.0)], knobs(), Recorder())
    dit.transformer_blocks[2].ff.ff[2].bias[0] = float("nan")
    with pytest.raises(PlainError, match="not a number at step 2"):
        calibrate([calibration_target(dit)], knobs(marked=0.0), Recorder())


def test_reports_progress_trials_and_similarities() -> None:
    recorder = Recorder()
    record = calibrate([calibration_target(small_dit(depth=4))], knobs(threshold=0.2), recorder)
    assert tuple(recorder.trials) == record.trials
    done = [one for one, _ in recorder.progressed]
    assert done == sorted(done)
    assert all(0 < one <= total for one, total in recorder.progressed)
    assert len({total for _, total in recorder.progressed}) == 1
    assert np.array_equal(recorder.last_similarities, record.similarities) and len(recorder.statuses) == 3


def test_cancel_takes_effect_within_one_layer_trial() -> None:
    dit = small_dit(depth=4)
    whole = Recorder()
    calibrate([calibration_target(dit)], knobs(threshold=0.1), whole)
    for cancel_after in range(1, whole.checks, workload(7, 61)):
        recorder = Recorder(cancel_after)
        evaluations: list[int] = []
        prepared = calibration_target(dit)
        original = dit.layer

        def counting(*arguments, original=original, recorder=recorder, evaluations=evaluations, **named):
            evaluations.append(recorder.checks)
            return original(*arguments, **named)

        dit.layer = counting
        try:
            with pytest.raises(Cancelled):
                calibrate([prepared], knobs(threshold=0.1), recorder)
        finally:
            del dit.layer
        # Between two checks no more than one trial's layers (and a step's baseline) are evaluated.
        assert evaluations.count(cancel_after) == 0, "nothing runs after the cancelling check"
        assert max(evaluations.count(check) for check in range(cancel_after)) <= 2 * dit.layers + 1


def test_diagonal_similarity_is_the_cosine_with_the_identity() -> None:
    query, key = torch.randn(2, 3, 17, 8, generator=torch.Generator().manual_seed(5))
    maps = (query @ key.transpose(1, 2) / 8**0.5).softmax(-1).double()
    identity = torch.eye(17, dtype=torch.float64)
    cosine = [(one * identity).sum() / (one.norm() * identity.norm()) for one in maps]
    assert diagonal_similarity(query, key, 4) == pytest.approx(float(sum(cosine) / 3), rel=1e-6)


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


@pytest.mark.parametrize(("temporal", "branch_skip"), [("reuse", "attention"), ("forecast", "both")])
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


@pytest.mark.parametrize("budget", workload([75.0, 50.0], [50.0]))
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
def test_the_table_is_the_same_at_every_threshold_and_its_search_can_be_cancelled() -> None:
    record = calibrate_end([calibration_target(DIT)], COUNTS, chosen(), Recorder(), rounds=2, exchanges=1)
    assert {trial.phase for trial in record.trials} == {END}
    derived = record.derive(1.7)
    assert derived.exact and derived.table == record.table and record.exact_interval == (0.0, float("inf"))
    assert "for the end at 50 %" in record.table.origin
    with pytest.raises(Cancelled):
        calibrate_end([calibration_target(DIT)], COUNTS, chosen(), Recorder(cancel_after=40))


def test_records_of_before_the_objective_are_found_again() -> None:
    older = Values({name: value for name, value in knobs().items() if name not in ("objective", "operations")})
    assert ditreducio.calibrates_alike(older, knobs(threshold=0.3, operations=70.0))
    assert not ditreducio.calibrates_alike(older, chosen())
    assert ditreducio.calibrates_alike(chosen(threshold=0.3, metric="relative"), chosen())
    assert not ditreducio.calibrates_alike(chosen(operations=70.0), chosen())
