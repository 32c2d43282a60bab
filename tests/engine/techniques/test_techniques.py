"""The registry of techniques and the words it has for them."""

from __future__ import annotations

import pytest

from paretone.errors import SettingError
from paretone.setting.knobs import Values, defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import conflict, technique, wording


def test_differences_read_as_people_say_them() -> None:
    left = Setting("f5-mini", Values(steps=16))
    right = Setting("f5-mini", Values(steps=32), (UsedTechnique("ditreducio", Values(threshold=0.1), "t"),))
    assert [wording(one) for one in left.differences(right)] == ["steps", "DiTReducio"]
    other = right.with_technique(UsedTechnique("ditreducio", Values(threshold=0.2), "u"))
    assert [wording(one) for one in right.differences(other)] == [
        "DiTReducio, Threshold δ",
        "DiTReducio, strategy table",
    ]


def test_an_unknown_technique_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingError, match="ditreducio"):
        technique("magic")


def test_conflicts_are_those_of_the_used_techniques() -> None:
    midpoint = Setting("f5-mini", Values(solver="midpoint"))
    assert conflict(midpoint) is None
    assert "Euler" in str(conflict(midpoint.with_technique(UsedTechnique("ditreducio"))))


@pytest.mark.parametrize(("every", "said"), [(2, "second"), (3, "third"), (4, "4th"), (12, "12th"), (22, "22nd")])
def test_every_so_many_steps_are_said_as_people_say_them(every: int, said: str) -> None:
    named = {"frozen_prefix": "every", "layer_reuse": "every", "guidance_stride": "every", "blockwise": "text_every"}
    for name, knob in named.items():
        one = technique(name)
        described = one.describe(defaults(one.knobs).replace(**{knob: every}))
        assert f"every {said}" in described, described
