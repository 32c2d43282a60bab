"""Settings resolved on a model: what is in force, what savings it means, and every combination that is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paretone.errors import PlainError, ProfileError, SettingError
from paretone.models.base import ModelInfo, OperationCounts, WeightSet
from paretone.models.f5.config import OPTIONS
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of, problem, resolve
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.resolving import NO_GUIDANCE

LAYERS = 3
HALF, TWO_THIRDS = (WeightSet(f"{w:.2f}", f"{w:.6f}"[2:] * 10, w, "model-guidance") for w in (0.5, 2 / 3))
OPERATIONS = OperationCounts(attention=3.0, feed_forward=5.0, fixed=7.0, layers=LAYERS, branches=2)


def info(**changes: object) -> ModelInfo:
    values = {
        "id": "small",
        "title": "Small",
        "family": "flow",
        "variant": "small",
        "checkpoint": "somewhere",
        "fingerprint": "0" * 64,
        "licence": "none",
        "device": "CPU: 2 cores",
        "precision": "float32",
        "sample_rate": 24_000,
        "layers": LAYERS,
        "branches": 2,
        "parameters": 1,
        "text_front_end": "test",
        "knobs": OPTIONS,
        "precisions": ("float32", "bfloat16"),
        "weight_sets": (HALF, TWO_THIRDS),
    }
    return ModelInfo(**(values | changes))


def setting(*used: UsedTechnique, **options: object) -> Setting:
    return Setting("small", Values(options), used)


def free(weight: float = 0.5, artefact: str = "") -> UsedTechnique:
    return UsedTechnique("guidance_free", Values(weight=weight), artefact)


def pruned(steps: int = 7, **knobs: object) -> UsedTechnique:
    return UsedTechnique("steps", Values(knobs, steps=steps))


def with_table(of: Setting, *actions: SkipAction, model: ModelInfo | None = None) -> tuple[Setting, StrategyTable]:
    """``of`` with a table whose layers all take ``actions`` after the first step, and then compute."""
    compatibility = compatibility_of(model or info(), of)
    row = (SkipAction.NONE, *actions, *[SkipAction.NONE] * (compatibility.steps - 1 - len(actions)))
    table = StrategyTable(compatibility, (row,) * LAYERS)
    return of.with_technique(UsedTechnique("ditreducio", NO_VALUES, table.fingerprint)), table


def test_without_techniques_the_options_are_in_force() -> None:
    found = resolve(info(), setting(steps=16))
    assert found.options == found.reference
    assert (found.options["steps"], found.options["guidance"]) == (16, 2.0)
    assert (found.weights, found.precision, found.evaluator, found.notes) == (None, "float32", None, ())
    assert found.ops_ratio(OPERATIONS) == 1


def test_techniques_compose() -> None:
    of, table = with_table(
        setting(free(), pruned(), UsedTechnique("precision", Values(precision="bfloat16")), steps=32), SkipAction.TS
    )
    found = resolve(info(), of, (table,))
    in_force = {name: found.options[name] for name in ("steps", "spacing", "sway", "guidance")}
    assert in_force == {"steps": 7, "spacing": "epss", "sway": -1.0, "guidance": 0.0}
    assert (found.reference["steps"], found.reference["guidance"]) == (32, 2.0)
    assert (found.weights, found.precision, dict(found.evaluator.arguments)) == (HALF, "bfloat16", {"table": table})
    assert found.compatibility.fingerprint == HALF.fingerprint
    one_branch = replace(OPERATIONS, branches=1)
    assert found.ops_ratio(OPERATIONS) == pytest.approx(7 / 64 * table.ops_ratio(one_branch))
    assert found.ops_ratio(one_branch) == found.ops_ratio(OPERATIONS)


def test_two_thirds_need_not_be_typed() -> None:
    assert resolve(info(), setting(free(0.67))).weights == TWO_THIRDS


def test_weights_are_chosen_by_fingerprint_where_it_is_given() -> None:
    twin = replace(HALF, fingerprint="e" * 64, method="distillation")
    assert resolve(info(weight_sets=(HALF, twin)), setting(free(0.5, twin.fingerprint))).weights == twin


def test_a_precision_that_the_device_lacks_is_replaced_and_that_is_said() -> None:
    found = resolve(info(), setting(UsedTechnique("precision", Values(precision="int8"))))
    assert found.precision == "float32"
    (said,) = found.notes
    assert said.startswith("CPU: 2 cores does not gain from int8 for Small, which uses float32")


@pytest.mark.parametrize(
    ("of", "changes", "words"),
    [
        (setting(free(0.6)), {}, r"no CFG-free weights for w = 0.60 \(it has weights for 0.50, 0.67\); train some"),
        (setting(free()), {"weight_sets": ()}, r"w = 0.50 \(it has none yet\); train some for it"),
        (setting(free(0.5, "f" * 64)), {}, "weights 'ffffffffffff' .* are not among those of Small"),
        (setting(free()), {"trained_guidance": 0.5}, "is already CFG-free"),
        (setting(free()), {"knobs": OPTIONS[:3]}, "guided differently from F5-TTS"),
        (setting(pruned()), {"family": "speech LM"}, "Step pruning is not for models like Small"),
        (setting(pruned(0)), {}, "Steps must lie between 1 and 128"),
        (setting(pruned(sway=0.9, spacing="uniform", stepz=1)), {}, "Step pruning has no knob named 'stepz'"),
        (setting(UsedTechnique("precision", Values(precision="float64"))), {}, "Precision must be one of"),
        (setting(UsedTechnique("ditreducio")), {}, "no strategy table yet"),
        (setting(UsedTechnique("ditreducio"), solver="midpoint"), {}, "choose the Euler solver"),
    ],
)
def test_what_cannot_be_used_is_refused(of: Setting, changes: dict, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        resolve(info(**changes), of)
    assert problem(info(**changes), of) is not None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (pruned(7), "number of steps 32, but 7 is in use"),
        (pruned(32, spacing="uniform"), "step grid 'epss', but 'uniform' is in use"),
        (pruned(32, sway=0.0), "sway coefficient -1.0, but 0.0 is in use"),
        (free(), "checkpoint '000000000000', but '500000500000' is in use"),
    ],
)
def test_a_table_of_another_trajectory_is_refused(more: UsedTechnique, words: str) -> None:
    of, table = with_table(setting(), SkipAction.TS)
    assert dict(resolve(info(), of, (table,)).evaluator.arguments) == {"table": table}
    with pytest.raises(ProfileError, match=words):
        resolve(info(), of.with_technique(more), (table,))


def test_a_table_of_another_depth_is_refused() -> None:
    of, table = with_table(setting(), SkipAction.TS)
    with pytest.raises(ProfileError, match="has 3 layers, but Small has 5"):
        resolve(info(layers=5), of, (table,))


def test_on_one_branch_only_temporal_skipping_remains() -> None:
    of, table = with_table(setting(free()), SkipAction.TS, SkipAction.BS)
    found = resolve(info(), of, (table,))
    assert any("3 cells of the strategy table skip branches" in note for note in found.notes)
    without = replace(table, actions=tuple((*row[:2], SkipAction.NONE, *row[3:]) for row in table.actions))
    one_branch = replace(OPERATIONS, branches=1)
    assert table.ops_ratio(one_branch) == without.ops_ratio(one_branch) < 1


def test_no_guidance_is_not_sold_as_cfg_free() -> None:
    assert resolve(info(), setting(guidance=0.0)).notes == (NO_GUIDANCE["flow"],)
    assert resolve(info(), setting(free(), guidance=1.0)).notes == ()


def test_a_baseline_of_another_strength_than_the_weights_stand_for_is_said() -> None:
    (note,) = resolve(info(), setting(free())).notes
    assert note.startswith("The CFG-free weights equal guidance 1, but the baseline is guided by 2:")
    assert note.endswith("For a fair comparison, set it to 1.")
    assert resolve(info(), setting(free(0.67))).notes == (), "two thirds stand for 2"
    (note,) = resolve(info(), setting(free(0.67), guidance=3.0)).notes
    assert "equal guidance 2, but the baseline is guided by 3:" in note


def test_a_cfg_free_checkpoint_runs_one_branch_and_takes_no_guidance() -> None:
    found = resolve(info(trained_guidance=0.5, branches=1), setting(guidance=2.0))
    assert found.options["guidance"] == found.reference["guidance"] == 0.0
    assert found.ops_ratio(OPERATIONS) == 1
    assert ["Guidance is ignored" in note for note in found.notes] == [True]
    assert resolve(info(trained_guidance=0.5, branches=1), setting(guidance=0.0)).notes == ()


def test_every_refusal_is_a_plain_error_with_a_sentence() -> None:
    reason = problem(info(), setting(free(0.3)))
    assert reason is not None and reason.endswith(".")
    assert issubclass(ProfileError, PlainError)
    assert problem(info(), setting(free(0.5))) is None
