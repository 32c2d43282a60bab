"""The technique as it is declared."""

from __future__ import annotations

import pytest

from paretone.errors import SettingError
from paretone.setting.knobs import defaults
from paretone.setting.setting import UsedTechnique
from paretone.techniques import knobs_of, technique
from paretone.techniques.speculative import NAME, TECHNIQUE


def test_it_is_exact_by_default() -> None:
    assert technique(NAME) is TECHNIQUE and TECHNIQUE.families == ("language",)
    knobs = knobs_of(UsedTechnique(NAME))
    assert knobs == defaults(TECHNIQUE.knobs)
    assert (knobs["tolerance"], knobs["draft_length"], knobs["draft"]) == (0.0, 3, "trained")
    assert TECHNIQUE.describe(knobs).endswith("β = 0 is exactly the target's distribution, verified as a whole")
    by_token = TECHNIQUE.describe(knobs.replace(verification="token"))
    assert by_token.endswith("β = 0 is exactly the target's distribution")


def test_tolerance_says_what_it_costs() -> None:
    described = TECHNIQUE.describe(defaults(TECHNIQUE.knobs).replace(tolerance=0.4, adaptive=True))
    assert (
        described
        == "drafts an adaptive number of tokens at a time; β = 0.4 is relaxed: speech may drift from the target's"
    )


def test_the_published_tolerance_is_a_labelled_choice() -> None:
    knobs = defaults(TECHNIQUE.knobs).replace(tolerance=0.4)
    assert knobs["tolerated"] == "guarded"
    assert TECHNIQUE.describe(knobs.replace(tolerated="published")).endswith("it applies to every id, as published")
    exact = knobs.replace(tolerance=0.0)
    assert TECHNIQUE.describe(exact.replace(tolerated="published")) == TECHNIQUE.describe(exact)


@pytest.mark.parametrize(
    ("knob", "value"), [("tolerance", 1.5), ("draft_length", 0), ("draft", "none"), ("verification", "")]
)
def test_values_out_of_range(knob: str, value: object) -> None:
    with pytest.raises(SettingError):
        knobs_of(UsedTechnique(NAME, defaults(TECHNIQUE.knobs).replace(**{knob: value})))
