from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from paretone.errors import SettingError, TrainingError
from paretone.models.f5.checkpoint import F5Checkpoint, read_f5_checkpoint
from paretone.models.files.checkpoints import fingerprint
from paretone.paths import resource
from paretone.techniques.guidance_free import GuidanceFreeRequest
from paretone.techniques.guidance_free.recipe import (
    DISTILLATION,
    METHODS,
    VALIDATION_TIMES,
    GuidanceFree,
    GuidanceFreeOptions,
    equivalent_guidance,
    options_of,
)
from paretone.training.features import Examples, collate
from paretone.training.flow_matching import (
    FlowMatchingOptions,
    draw_problem,
    predicted_velocity,
    span_error,
    without_conditions,
)
from paretone.training.processes import join_processes
from tests.engine.training.learning import SHARE
from tests.engine.training.toy_model import toy_examples, toy_model
from tests.packages import needs
from tests.workload import workload

pytestmark = needs("accelerate")

QUICK = GuidanceFreeOptions(0.5, frames=400, warm_up=2, validation_items=4, learning_rate=1e-3, average_decay=0.9)


@pytest.fixture
def checkpoint(tmp_path: Path) -> F5Checkpoint:
    return read_f5_checkpoint(toy_model(tmp_path / "model"))


@pytest.fixture(scope="module")
def examples() -> Examples:
    return toy_examples()


def _recipe(checkpoint: F5Checkpoint, examples: Examples, **changes: object) -> GuidanceFree:
    options = replace(QUICK, **changes)
    return GuidanceFree(checkpoint, examples, join_processes("cpu", options.half_precision), options)


def _problem(examples: Examples, **options: float):
    batch = collate([[one] for one in examples.training[:3]])
    draw = FlowMatchingOptions(**{"drop_audio": 0.0, "drop_both": 0.0, **options})
    return batch.ids, draw_problem(batch, draw, torch.Generator().manual_seed(2))


@torch.no_grad()
def _branches(model, ids, problem):
    return predicted_velocity(model, ids, problem), predicted_velocity(model, ids, without_conditions(problem))


@pytest.mark.parametrize("weight", [1.5, 0.0, float("nan")])
def test_weights_without_a_fixed_point_are_refused_with_the_reason(weight: float):
    with pytest.raises(SettingError, match="between 0 and 1") as refusal:
        GuidanceFreeOptions(weight)
    if weight >= 1:
        assert "explode" in str(refusal.value)


def test_options_are_checked_and_drop_as_the_papers():
    with pytest.raises(SettingError, match="known: model-guidance, distillation"):
        GuidanceFreeOptions(0.5, method="magic")
    with pytest.raises(SettingError, match="learning rate"):
        GuidanceFreeOptions(0.5, matrix_rate=-1)
    with pytest.raises(SettingError, match="share from 0 to 1"):
        GuidanceFreeOptions(0.5, weight_warm_up=2)
    with pytest.raises(SettingError, match="known: swayed, uniform"):
        options_of(GuidanceFreeRequest(model="f5-mini", work="none", weight=0.5, times="early"))
    objective = QUICK.objective
    assert objective.drop_both == 0.2
    assert objective.drop_both + objective.drop_audio == pytest.approx(1 - (1 - 0.2) * (1 - 0.3))
    assert equivalent_guidance(0.5) == 1
    assert equivalent_guidance(2 / 3) == pytest.approx(2)
    assert equivalent_guidance(0.75) == 3


def test_model_guidance_adds_the_difference_of_the_branches(checkpoint: F5Checkpoint, examples: Examples):
    recipe = _recipe(checkpoint, examples)
    ids, problem = _problem(examples)
    conditional, unconditional = _branches(recipe.model, ids, problem)
    assert span_error(conditional, unconditional, problem.span) > 1e-4
    target = recipe._target(ids, problem, conditional, progress=1.0)
    torch.testing.assert_close(target, problem.target + 0.5 * (conditional - unconditional))
    ids, problem = _problem(examples, drop_both=1.0)
    target = recipe._target(ids, problem, _branches(recipe.model, ids, problem)[0], progress=1.0)
    assert torch.equal(target, problem.target)
    ids, problem = _problem(examples, drop_audio=1.0)
    assert problem.drops_audio and not problem.drops_text
    conditional, unconditional = _branches(recipe.model, ids, problem)
    target = recipe._target(ids, problem, conditional, progress=1.0)
    torch.testing.assert_close(target, problem.target + 0.5 * (conditional - unconditional))
    ids, problem = _problem(examples)
    velocity = predicted_velocity(recipe.model, ids, problem)
    assert not recipe._target(ids, problem, velocity.detach(), progress=1.0).requires_grad
    assert not any(one.requires_grad for one in recipe._teacher.parameters())


def test_the_weight_rises_and_the_difference_can_be_the_averaged_models(checkpoint: F5Checkpoint, examples: Examples):
    recipe = _recipe(checkpoint, examples, weight_warm_up=0.2, latest=0.5)
    ids, problem = _problem(examples)
    conditional, unconditional = _branches(recipe.model, ids, problem)
    gate = (problem.times <= 0.5).float()[:, None, None]
    assert 0 < gate.sum() < len(gate)
    for progress, weight in ((0.0, 0.0), (0.05, 0.125), (0.2, 0.5), (0.9, 0.5)):
        target = recipe._target(ids, problem, conditional, progress)
        torch.testing.assert_close(target, problem.target + gate * weight * (conditional - unconditional))
    recipe = _recipe(checkpoint, examples, average_difference=True)
    with torch.no_grad():
        recipe.average.module.proj_out.weight.mul_(1.5)
    conditional, unconditional = _branches(recipe.average.module, ids, problem)
    target = recipe._target(ids, problem, torch.zeros_like(conditional), progress=1.0)
    torch.testing.assert_close(target, problem.target + 0.5 * (conditional - unconditional))


def test_without_the_stop_gradient_the_loss_is_that_of_the_formula_differentiated_as_a_whole(
    checkpoint: F5Checkpoint, examples: Examples
):
    gradients = {}
    for stops in (True, False):
        recipe = _recipe(checkpoint, examples, stop_gradient=stops, weight_warm_up=0.0)
        ids, problem = _problem(examples)
        velocity = predicted_velocity(recipe.model, ids, problem)
        loss = span_error(velocity, recipe._target(ids, problem, velocity, progress=1.0), problem.span)
        (gradients[stops],) = torch.autograd.grad(loss, [recipe.model.proj_out.weight])
    conditional = predicted_velocity(recipe.model, ids, problem)
    unconditional = predicted_velocity(recipe.model, ids, without_conditions(problem))
    error = conditional - (problem.target + 0.5 * (conditional - unconditional))
    (plain,) = torch.autograd.grad(error[problem.span].square().mean(), [recipe.model.proj_out.weight])
    torch.testing.assert_close(gradients[False], plain)
    assert (gradients[True] - plain).norm() > 0.05 * plain.norm()
    for changes in ({"method": DISTILLATION}, {"average_difference": True}):
        with pytest.raises(SettingError, match="keep the stop gradient"):
            GuidanceFreeOptions(0.5, stop_gradient=False, **changes)


def test_distillation_and_validation_follow_the_guided_model_that_was_started_from(
    checkpoint: F5Checkpoint, examples: Examples
):
    recipe = _recipe(checkpoint, examples, method=DISTILLATION, weight=2 / 3)
    with torch.no_grad():
        recipe.model.proj_out.weight.add_(1)  # what is trained does not shape the target
    teacher = checkpoint.build()
    ids, problem = _problem(examples)
    conditional, unconditional = _branches(teacher, ids, problem)
    target = recipe._target(ids, problem, _branches(recipe.model, ids, problem)[0], progress=1.0)
    torch.testing.assert_close(target, conditional + 2 * (conditional - unconditional))
    ids, problem = _problem(examples, drop_both=1.0)
    target = recipe._target(ids, problem, None, progress=1.0)
    torch.testing.assert_close(target, _branches(teacher, ids, problem)[1])
    recipe = _recipe(checkpoint, examples, weight=2 / 3)
    for one in recipe._validation_problems:
        conditional, unconditional = _branches(teacher, one.batch.ids, one.problem)
        torch.testing.assert_close(one.conditional, conditional)
        torch.testing.assert_close(one.target, conditional + 2 * (conditional - unconditional))
    halfway = replace(one, conditional=2 * conditional - one.target)
    probe = recipe._result(halfway)
    assert probe.progress == pytest.approx(probe.goal / 2, rel=1e-4)
    assert probe.error == pytest.approx(probe.goal / 4, rel=1e-4)


@pytest.mark.parametrize(("half", "matrix_rate"), workload([(False, 0.005), (True, None)], [(False, 0.005)]))
def test_distillation_closes_the_gap_on_held_out_speech(
    checkpoint: F5Checkpoint, examples: Examples, half: bool, matrix_rate: float | None
):
    recipe = _recipe(
        checkpoint, examples, method=DISTILLATION, half_precision=half, weight_warm_up=0.0, matrix_rate=matrix_rate
    )
    before = recipe.validate()
    assert before["gap"] == pytest.approx(1.0, rel=1e-5)
    assert before["learnt"] == pytest.approx(0.0, abs=1e-5)
    assert list(before) == [*(f"guided t={time:.2f}" for time in VALIDATION_TIMES), "gap", "learnt"]
    assert before == recipe.validate()
    started = copy.deepcopy(recipe.model.state_dict())
    for number in range(1, workload(61, 11)):
        recipe.step(number, number / 61)
    after = recipe.validate()
    # With nothing learnt the gap is one and the share learnt zero; with everything, the other way round.
    assert after["gap"] < 1 - SHARE
    assert after["learnt"] > SHARE
    assert abs(1 - after["learnt"]) < 1 - SHARE
    assert all(one.dtype == torch.float32 for one in recipe.model.parameters())
    assert not [name for name, one in recipe.model.named_parameters() if torch.equal(one, started[name])], "all learn"
    assert all(torch.equal(one, started[name]) for name, one in recipe._teacher.named_parameters()), "the teacher stays"


def test_the_export_is_a_checkpoint_that_says_what_it_is(tmp_path: Path, checkpoint: F5Checkpoint, examples: Examples):
    recipe = _recipe(checkpoint, examples, weight=2 / 3, method=DISTILLATION, half_precision=True)
    recipe.step(1, 0.5)
    recipe.export(tmp_path)
    path = tmp_path / "w-0.67.safetensors"
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    assert metadata == {
        "cfg_free": "true",
        "weight": "0.666667",
        "equivalent_guidance": "2",
        "method": DISTILLATION,
        "base": fingerprint(checkpoint.path),
        "steps": "1",
        "times": "swayed",
        "stop_gradient": "true",
        "weight_warm_up": "0.1",
        "warm_up": "2",
    }
    for name in ("model.yaml", "vocab.txt"):
        (tmp_path / name).write_bytes((checkpoint.path.parent / name).read_bytes())
    exported = read_f5_checkpoint(path)
    for name, value in recipe.average.module.state_dict().items():
        torch.testing.assert_close(exported.weights[name].float(), value, atol=1e-3, rtol=1e-3)


def test_another_runs_state_is_refused(tmp_path: Path, checkpoint: F5Checkpoint, examples: Examples):
    recipe = _recipe(checkpoint, examples)
    state = recipe.state()
    for change, words in (
        ({"draws": state["draws"] * 2}, "2 processes"),
        ({"base": "0" * 64}, "not started from"),
        ({"choices": {"stop_gradient": "false"}}, "stop gradient = 'false', not 'true'"),
    ):
        with pytest.raises(TrainingError, match=words):
            recipe.restore({**state, **change})
    early = {name: value for name, value in state.items() if name != "choices"}
    uniform = _recipe(checkpoint, examples, objective=replace(QUICK.objective, uniform_times=1.0))
    with pytest.raises(TrainingError, match="times = 'swayed', not 'uniform'"):
        uniform.restore(early)
    recipe.restore(early)


def test_muon_goes_on_where_it_stopped(checkpoint: F5Checkpoint, examples: Examples):
    recipe, resumed = (_recipe(checkpoint, examples, matrix_rate=0.005) for _ in range(2))
    with pytest.raises(TrainingError, match="other optimisers"):
        recipe.restore(_recipe(checkpoint, examples).state())
    recipe.step(1, 0.1)
    resumed.restore(copy.deepcopy(recipe.state()))
    assert recipe.step(2, 0.2) == resumed.step(2, 0.2)
    for one, other in zip(recipe.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_bundled_weights_were_made_from_the_bundled_model():
    folder, name, weight = resource("models", "f5-mini"), "w-0.67", 2 / 3
    path = folder / "cfg_free" / f"{name}.safetensors"
    assert path.stat().st_size < 16.5e6
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    assert metadata["cfg_free"] == "true"
    assert float(metadata["weight"]) == pytest.approx(weight, abs=1e-6)
    assert float(metadata["equivalent_guidance"]) == pytest.approx(equivalent_guidance(weight), abs=1e-5)
    assert metadata["method"] in METHODS
    assert metadata["base"] == fingerprint(folder / "model.safetensors")
    lines = path.with_name(f"{name}.training.jsonl").read_text(encoding="utf-8").splitlines()
    header, *_, last = map(json.loads, lines)
    assert header["initial_weights"] == metadata["base"]
    assert last["step"] == int(metadata["steps"])
