"""DiTReducio against the golden runs: fixed strategy tables, and whole calibrations with their tables."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.sampling.actions import SkipAction
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.flow import euler_steps, integrate, sampling_grid
from paretone.sampling.guidance import guided_velocity, is_guided
from paretone.sampling.skipping import LayerMemory
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values, defaults
from paretone.techniques.ditreducio import TECHNIQUE
from paretone.techniques.ditreducio.calibration import calibrate
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.parity.fixtures import Fixture, alternating, assert_close, cases, fixtures
from tests.parity.test_parity_backbones import WHOLE_RUN, Task, build, is_backbone
from tests.parity.test_parity_megatts3 import Task as MegaTask
from tests.parity.test_parity_megatts3 import build as build_mega
from tests.parity.test_parity_megatts3 import is_mega_dit

METRICS = {"rel": "relative", "mae": "mae"}
VARIANTS = {"out_none": None, "out": "both", "out_bs_ff": "both", "out_bs_attn_only": "attention"}
"""Which modules branch skipping saves, by the name of the output; ``None``: nothing is skipped."""


def is_ditreducio(description: dict) -> bool:
    return "calibration" in description or any(
        isinstance(part, dict) and {"weights", "table"} <= set(part) for part in description.values()
    )


DITREDUCIO = fixtures("dit", is_ditreducio)


def weights_of(fixture: Fixture, target: str) -> Fixture | None:
    """The fixture whose weights ``target`` uses, if it is a diffusion transformer that we have."""
    part = fixture.description.get(target)
    if not isinstance(part, dict) or "weights" not in part:
        return None
    weights = Fixture(fixture.folder, part["weights"].removesuffix(".safetensors"))
    if not (weights.folder / f"{weights.name}.json").is_file():
        return None
    return weights if is_backbone(weights.description) or is_mega_dit(weights.description) else None


@dataclass(frozen=True)
class Prepared:
    """A target to sample or calibrate."""

    target: CalibrationTarget
    guide: Callable[[Tensor], Tensor]
    """Of the velocities."""
    finish: Callable[[Tensor], Tensor] = lambda result: result
    """Applied by the fixture to the last state."""


def prepare(fixture: Fixture, target: str) -> Prepared:
    said, weights = fixture.description[target], weights_of(fixture, target)
    return (prepare_mega if is_mega_dit(weights.description) else prepare_f5)(said, weights)


def prepare_f5(said: dict, weights: Fixture) -> Prepared:
    backbone = build(weights)
    run_name = said["noise"].removeprefix("golden.").removesuffix(".noise")
    task = Task.of(weights, run_name)
    spacing = "epss" if said.get("use_epss", True) else "uniform"
    sway = said.get("sway") or 0.0
    times = sampling_grid(said["steps"], spacing, sway)
    guidance = float(said["cfg_strength"])
    run = backbone.begin(task.prompt, task.ids, times[:-1], is_guided(guidance))
    sampling = Values(steps=said["steps"], spacing=spacing, sway=sway, guidance=guidance)
    compatibility = Compatibility("golden", "", weights.name, sampling)
    noise = weights[f"{run_name}.noise"]

    def guide(velocities: Tensor) -> Tensor:
        return guided_velocity(velocities, guidance)

    target = CalibrationTarget(backbone, run, noise, times, guide, euler_steps(times), run.branches, compatibility)
    return Prepared(target, guide, lambda result: torch.where(task.is_prompt, task.prompt, result))


def prepare_mega(said: dict, weights: Fixture) -> Prepared:
    backbone = build_mega(weights)
    initial, steps = said["noise"].split(" + ")
    assert initial == "noise_init"
    task = MegaTask(weights, said["steps"], *said["seq_cfg_w"], weights[steps])
    run = task.begin(backbone)
    sampling = Values(steps=task.steps, intelligibility=task.intelligibility, similarity=task.similarity)
    compatibility = Compatibility("golden", "", weights.name, sampling)

    def guide(left: Tensor) -> Tensor:
        return task.guide(backbone.project(left))

    target = CalibrationTarget(backbone, run, task.noise, task.times, guide, task.follow(), run.branches, compatibility)
    return Prepared(target, task.guide)


def layer_major(rows: list[list[str]]) -> tuple[tuple[SkipAction, ...], ...]:
    """The fixtures write step by step; tables are layer by layer."""
    return tuple(tuple(SkipAction[name] for name in column) for column in zip(*rows, strict=True))


def tables(fixture: Fixture) -> Iterator[tuple[str, str]]:
    """Targets and their outputs."""
    for target, output in itertools.product(fixture.description, VARIANTS):
        if f"{target}.{output}" in fixture and weights_of(fixture, target) is not None:
            yield target, output


def calibrations(fixture: Fixture) -> Iterator[tuple[str, str, int]]:
    """Targets, metrics and numbers of entries."""
    for name, entries in fixture.description.get("calibration", {}).items():
        target, _, metric = name.rpartition("_")
        if metric in METRICS and weights_of(fixture, target) is not None:
            yield from ((target, metric, number) for number in range(len(entries)))


@pytest.mark.parametrize(("fixture", "target", "output"), cases(DITREDUCIO, tables))
def test_parity_strategy_table(fixture: Fixture, target: str, output: str) -> None:
    branch_skip, prepared = VARIANTS[output], prepare(fixture, target)
    sampled, backbone = prepared.target, prepared.target.backbone
    actions = layer_major(fixture.description[target]["table"])
    if branch_skip is None:
        table = StrategyTable.computing(sampled.compatibility, backbone.layers)
    else:
        table = StrategyTable(sampled.compatibility, actions, branch_skip)
    plan, memory = skip_plan(table), [LayerMemory() for _ in range(backbone.layers)]

    def velocity(state: Tensor, step: int) -> Tensor:
        return prepared.guide(backbone.velocity(state, step, sampled.run, plan.at(step), memory))

    with torch.inference_mode():
        result = integrate(velocity, sampled.noise, sampled.times, follow=sampled.follow)
    assert_close(prepared.finish(result), fixture[f"{target}.{output}"], WHOLE_RUN, f"{target}.{output}")


@pytest.mark.parametrize(
    ("fixture", "target", "metric", "number", "side_by_side"),
    alternating(cases(DITREDUCIO, calibrations), (False, True)),
)
def test_parity_calibration(fixture: Fixture, target: str, metric: str, number: int, side_by_side: bool) -> None:
    entry = fixture.description["calibration"][f"{target}_{metric}"][number]
    calibrated = prepare(fixture, target).target
    knobs: Values = defaults(TECHNIQUE.knobs).replace(threshold=float(entry["delta"]), metric=METRICS[metric])
    with torch.inference_mode():
        record = calibrate([calibrated], knobs, Recorder(), side_by_side=side_by_side)

    assert np.allclose(record.similarities.T, np.array(entry["sims"]), rtol=1e-5, atol=0)
    assert record.cut == pytest.approx(entry["cut"], rel=1e-5)
    steps = range(fixture.description[target]["steps"])
    pre_calibrated = [[SkipAction.NONE.name] * calibrated.backbone.layers for _ in steps]
    for trial in record.trials:
        if trial.phase == "pre-calibration" and trial.accepted:
            pre_calibrated[trial.step][trial.layer] = trial.action.name
    assert pre_calibrated == entry["pre_table"]
    assert record.table.actions == layer_major(entry["table"])
    # A table derived at the threshold of its own calibration is that calibration's.
    assert record.derive(float(entry["delta"])).exact
    assert record.derive(float(entry["delta"])).table.actions == record.table.actions
