"""Declarations of DiTReducio's rivals: schedules, savings foreseen, and every combination that is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paretone.errors import SettingError
from paretone.models.f5.config import OPTIONS as F5_OPTIONS
from paretone.models.megatts3.config import OPTIONS as MEGA_OPTIONS
from paretone.sampling.actions import SkipAction
from paretone.sampling.guidance import STRENGTH, TwoWeightGuidance
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import UsedTechnique
from paretone.techniques import error_curve, first_block, guidance_interval, resolve
from paretone.techniques.error_curve import ErrorCurve
from tests.engine.techniques.test_resolving import OPERATIONS, free, info, setting

INF = float("inf")
CACHE, FIRST = UsedTechnique(error_curve.NAME), UsedTechnique(first_block.NAME)


def guided(steps: int) -> UsedTechnique:
    return UsedTechnique(guidance_interval.NAME, Values(steps=steps))


def test_a_curve_is_the_mean_of_sentences_and_gives_a_schedule() -> None:
    curve = ErrorCurve((INF, 0.1, 0.1, 0.1, 0.1), (INF, 0.3, 0.1, 0.1, 0.5))
    none, reuse = SkipAction.NONE, SkipAction.TS
    assert curve.schedule(0.25) == ((none, reuse, reuse, none, reuse), (none, none, reuse, reuse, none))
    assert curve.schedule(0.0) == ((none,) * 5,) * 2
    assert ErrorCurve.mean([ErrorCurve((INF, 1.0), (INF, 0.0)), ErrorCurve((INF, 3.0), (INF, 1.0))]) == ErrorCurve(
        (INF, 2.0), (INF, 0.5)
    )


def test_savings_are_foreseen_where_they_can_be() -> None:
    assert resolve(info(), setting(CACHE)).ops_ratio(OPERATIONS) is None
    assert resolve(info(), setting(FIRST)).ops_ratio(OPERATIONS) is None
    one = replace(OPERATIONS, branches=1).evaluation
    expected = (4 * OPERATIONS.evaluation + 12 * one) / (16 * OPERATIONS.evaluation)
    assert resolve(info(), setting(guided(4), steps=16)).ops_ratio(OPERATIONS) == pytest.approx(expected)
    everywhere = resolve(info(), setting(guided(16), steps=16))
    assert everywhere.ops_ratio(OPERATIONS) == 1
    assert "guidance at all of them" in everywhere.notes[0]


def test_one_branch_of_either_family_is_without_guidance() -> None:
    of_f5, of_mega = checked(F5_OPTIONS, {}, "F5"), checked(MEGA_OPTIONS, {}, "Mega")
    assert STRENGTH.off(of_f5)["guidance"] == 0
    mega = TwoWeightGuidance().off(of_mega)
    assert (mega["intelligibility"], mega["similarity"]) == (1, 1)
    assert [STRENGTH.branches(one) for one in (of_f5, STRENGTH.off(of_f5))] == [2, 1]
    assert [TwoWeightGuidance().branches(one) for one in (of_mega, mega)] == [3, 1]


@pytest.mark.parametrize(
    ("used", "options", "words"),
    [
        ((FIRST, UsedTechnique("ditreducio")), {}, "DiTReducio and First-block cache.* both decide"),
        ((CACHE, FIRST), {}, "error-curve cache.* and First-block cache.* both decide"),
        ((CACHE,), {"solver": "midpoint"}, "choose the Euler solver"),
        ((guided(3), free()), {}, "CFG-free weights run one branch from the start"),
        ((guided(3),), {"guidance": 0.0}, "Guidance is off"),
        ((guided(3), UsedTechnique("ditreducio")), {}, "calibrated with guidance at all steps"),
    ],
)
def test_what_contradicts_itself_is_refused(used: tuple, options: dict, words: str) -> None:
    of = setting(**options)
    for one in used:
        of = of.with_technique(one)
    with pytest.raises(SettingError, match=words):
        resolve(info(), of)
