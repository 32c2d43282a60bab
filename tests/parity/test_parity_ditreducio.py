"""DiTReducio against the golden runs: fixed strategy tables, and whole calibrations with their tables."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.knobs import Values, defaults
from engine.models.f5.dit import DiT
from engine.sampling.flow import euler_steps, integrate, sampling_grid
from engine.sampling.guidance import guided_velocity, is_guided
from engine.sampling.skipping import LayerMemory, SkipPlan
from engine.techniques.ditreducio import TECHNIQUE
from engine.techniques.ditreducio.calibration import calibrate
from engine.techniques.ditreducio.subject import Subject
from engine.techniques.ditreducio.table import Action, Belonging, StrategyTable
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.parity.fixtures import Fixture, assert_close, fixtures
from tests.parity.test_parity_backbones import WHOLE_RUN, Task, build, is_backbone

METRICS = {"rel": "relative", "mae": "mae"}
VARIANTS = {"out_none": None, "out_bs_ff": "both", "out_bs_attn_only": "attention"}
"""Which modules branch skipping saves, by the name of the output; ``None``: nothing is skipped."""


def is_ditreducio(description: dict) -> bool:
    return "calibration" in description or any(
        isinstance(part, dict) and {"weights", "table"} <= set(part) for part in description.values()
    )


def weights_of(fixture: Fixture, subject: str) -> Fixture | None:
    """The fixture whose weights ``subject`` uses, if it is a diffusion transformer of the F5 family."""
    part = fixture.description.get(subject)
    if not isinstance(part, dict) or "weights" not in part:
        return None
    weights = Fixture(fixture.folder, part["weights"].removesuffix(".safetensors"))
    described = (weights.folder / f"{weights.name}.json").is_file()
    return weights if described and is_backbone(weights.description) else None


def prepare(fixture: Fixture, subject: str) -> tuple[DiT, Subject, Task]:
    said = fixture.description[subject]
    weights = weights_of(fixture, subject)
    backbone = build(weights)
    run_name = said["noise"].removeprefix("golden.").removesuffix(".noise")
    task = Task.of(weights, run_name)
    spacing = "epss" if said.get("use_epss", True) else "uniform"
    sway = said.get("sway") or 0.0
    times = sampling_grid(said["steps"], spacing, sway)
    guidance = float(said["cfg_strength"])
    run = backbone.begin(task.prompt, task.ids, times[:-1], is_guided(guidance))
    sampling = Values(steps=said["steps"], spacing=spacing, sway=sway, guidance=guidance)
    belonging = Belonging(fixture.name, "", weights.name, sampling)
    noise = weights[f"{run_name}.noise"]

    def guide(velocities: Tensor) -> Tensor:
        return guided_velocity(velocities, guidance)

    return backbone, Subject(backbone, run, noise, times, guide, euler_steps(times), run.branches, belonging), task


def layer_major(rows: list[list[str]]) -> tuple[tuple[Action, ...], ...]:
    """The fixtures write step by step; tables are layer by layer."""
    return tuple(tuple(Action[name] for name in column) for column in zip(*rows, strict=True))


def table_cases() -> list:
    cases = []
    for parameter in fixtures("dit", is_ditreducio):
        fixture = parameter.values[0]
        for subject in fixture.description:
            if weights_of(fixture, subject) is None:
                continue
            for output, branch_skip in VARIANTS.items():
                if f"{subject}.{output}" in fixture:
                    values = fixture, subject, output, branch_skip
                    cases.append(pytest.param(*values, id=f"{fixture.name}-{subject}-{output}", marks=parameter.marks))
    return cases


def calibration_cases() -> list:
    cases = []
    for parameter in fixtures("dit", is_ditreducio):
        fixture = parameter.values[0]
        for name, entries in fixture.description.get("calibration", {}).items():
            subject, _, metric = name.rpartition("_")
            if metric in METRICS and weights_of(fixture, subject) is not None:
                for entry in entries:
                    identity = f"{fixture.name}-{name}-{entry['delta']:g}"
                    cases.append(pytest.param(fixture, subject, metric, entry, id=identity, marks=parameter.marks))
    return cases


@pytest.mark.parametrize(("fixture", "subject", "output", "branch_skip"), table_cases())
def test_parity_strategy_table(fixture: Fixture, subject: str, output: str, branch_skip: str | None) -> None:
    backbone, prepared, task = prepare(fixture, subject)
    actions = layer_major(fixture.description[subject]["table"])
    if branch_skip is None:
        table = StrategyTable.computing(prepared.belonging, backbone.layers)
    else:
        table = StrategyTable(prepared.belonging, actions, branch_skip)
    plan, memory = SkipPlan(table), [LayerMemory() for _ in range(backbone.layers)]

    def velocity(state: Tensor, step: int) -> Tensor:
        branches = backbone.velocity(state, step, prepared.run, plan.at(step), memory)
        return prepared.guide(branches)

    with torch.inference_mode():
        result = integrate(velocity, prepared.noise, prepared.times)
    result = torch.where(task.is_prompt, task.prompt, result)
    assert_close(result, fixture[f"{subject}.{output}"], WHOLE_RUN, f"{subject}.{output}")


@pytest.mark.parametrize("side_by_side", [False, True], ids=["", "side-by-side"])
@pytest.mark.parametrize(("fixture", "subject", "metric", "entry"), calibration_cases())
def test_parity_calibration(fixture: Fixture, subject: str, metric: str, entry: dict, side_by_side: bool) -> None:
    backbone, prepared, _ = prepare(fixture, subject)
    knobs: Values = defaults(TECHNIQUE.knobs).replace(threshold=float(entry["delta"]), metric=METRICS[metric])
    with torch.inference_mode():
        record = calibrate([prepared], knobs, Recorder(), side_by_side=side_by_side)

    assert np.allclose(record.similarities.T, np.array(entry["sims"]), rtol=1e-5, atol=0)
    assert record.cut == pytest.approx(entry["cut"], rel=1e-5)
    pre_calibrated = [
        [Action.NONE.name for _ in range(backbone.layers)] for _ in range(fixture.description[subject]["steps"])
    ]
    for trial in record.trials:
        if trial.phase == "pre-calibration" and trial.accepted:
            pre_calibrated[trial.step][trial.layer] = trial.action.name
    assert pre_calibrated == entry["pre_table"]
    assert record.table.actions == layer_major(entry["table"])
    # A table derived at the threshold of its own calibration is that calibration's.
    assert record.derive(float(entry["delta"])).exact
    assert record.derive(float(entry["delta"])).table.actions == record.table.actions
