"""The rule of the dual block cache, decision by decision, and what its settings are refused for."""

from __future__ import annotations

import pytest

from paretone.errors import SettingError
from paretone.setting.knobs import Values, defaults
from paretone.setting.setting import UsedTechnique
from paretone.techniques import dual_block_cache, resolve
from paretone.techniques.dual_block_cache.rule import STATIC, Decisions, Rule, read_mask
from tests.engine.techniques.test_resolving import info, setting

FREE = {"residual_diff_threshold": 0.5, "max_warmup_steps": 1, "max_continuous_cached_steps": -1}
LITTLE, MUCH = 0.25, 0.75


def reused(changes: str, **fields: object) -> list[int]:
    """The steps that are reused if what the first blocks add changes (little: ``.``, much: ``x``) after the first."""
    decisions = Decisions(Rule(**{**FREE, **fields}))
    decisions.reuses(0, None)
    for step, one in enumerate(changes, start=1):
        decisions.reuses(step, lambda change=LITTLE if one == "." else MUCH: change)
    return decisions.reused


@pytest.mark.parametrize(
    ("changes", "fields", "expected"),
    [
        ("..x..", {}, [1, 2, 4, 5]),
        ("..x..", {"residual_diff_threshold": 0.0}, []),
        ("..x..", {"residual_diff_threshold": 1.0}, [1, 2, 3, 4, 5]),
        ("..x..", {"max_warmup_steps": 3}, [4, 5]),
        ("..x..", {"max_warmup_steps": 5, "warmup_interval": 2}, [1, 5]),
        ("..x..", {"max_cached_steps": 3}, [1, 2, 4]),
        ("......", {"max_continuous_cached_steps": 2}, [1, 2, 4, 5]),
        ("......", {"max_continuous_cached_steps": 0}, []),
        ("......", {"max_accumulated_residual_diff_threshold": 0.75}, [1, 2, 3]),
        ("x.....", {"max_accumulated_residual_diff_threshold": 0.76}, [2]),
        ("......", {"steps_computation_mask": read_mask("1101001")}, [2, 4, 5]),
        ("..x...", {"steps_computation_mask": read_mask("110"), "max_warmup_steps": 9}, [2, 4, 5, 6]),
        (
            "xxxxxx",
            {
                "steps_computation_mask": read_mask("1101"),
                "steps_computation_policy": STATIC,
                "max_cached_steps": 1,
                "max_continuous_cached_steps": 1,
            },
            [2, 4, 5, 6],
        ),
    ],
)
def test_decisions(changes: str, fields: dict[str, object], expected: list[int]) -> None:
    assert reused(changes, **fields) == expected


def test_nothing_is_reused_before_something_was_computed() -> None:
    mask = {"steps_computation_mask": read_mask("0000"), "steps_computation_policy": STATIC}
    assert not Decisions(Rule(**mask)).reuses(0, None)


def test_masks_are_read_as_cache_dit_prints_them_and_as_digits() -> None:
    assert read_mask("1101") == read_mask("[1, 1, 0, 1]") == (True, True, False, True)
    assert read_mask("") == ()
    with pytest.raises(SettingError, match="one digit per step"):
        read_mask("12")


# --- Resolving --------------------------------------------------------------------------------------------------------
def used(**knobs: object) -> UsedTechnique:
    return UsedTechnique(dual_block_cache.NAME, Values(knobs))


def test_knobs_are_the_fields_and_their_defaults() -> None:
    assert Rule.of(defaults(dual_block_cache.KNOBS)) == Rule()
    plan = resolve(info(), setting(used(Fn_compute_blocks=2, steps_computation_mask="1, 0" + ", 1" * 30)))
    rule = dict(plan.evaluator.arguments)["rule"]
    assert (rule.Fn_compute_blocks, rule.steps_computation_mask[:3]) == (2, (True, False, True))
    assert not plan.notes


def test_a_short_mask_is_noted() -> None:
    assert "has 3 of 16 steps" in resolve(info(), setting(used(steps_computation_mask="110"), steps=16)).notes[0]


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"Fn_compute_blocks": 500, "Bn_compute_blocks": 500}, "none is left to reuse"),
        ({"steps_computation_mask": "0110", "steps_computation_policy": STATIC}, "must begin with 1"),
        ({"steps_computation_mask": "yes"}, "one digit per step"),
        ({"residual_diff_threshold": 1.5}, "must lie between 0 and 1"),
    ],
)
def test_what_cannot_work_is_refused(knobs: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        resolve(info(), setting(used(**knobs)))


def test_the_description_is_that_of_cache_dit() -> None:
    knobs = defaults(dual_block_cache.KNOBS).replace(
        Fn_compute_blocks=8, Bn_compute_blocks=1, taylorseer_order=2, steps_computation_mask="10"
    )
    words = dual_block_cache.describe(knobs)
    assert words == "F8B1, threshold 0.12, warm-up 4, continuous 2, dynamic mask, Taylor order 2"
