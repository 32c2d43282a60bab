"""One headline per comparison: how much faster B is, or why that is not said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.state.comparison import Comparison
from engine.setting.knobs import Values
from engine.setting.setting import Setting
from engine.setting.take import Measurements, Take


def take(seconds: float, audio: float = 2.0, **changes: object) -> Take:
    made = Take(
        "one",
        "2026-11-21",
        "Text.",
        "anna",
        Setting("f5-mini", Values(steps=8)),
        24000,
        np.zeros(4800, np.float32),
        Measurements(seconds, audio, device="cpu"),
        machine="here",
    )
    return replace(made, **changes)


def headline(one: Take | None, two: Take | None) -> str:
    compared = Comparison()
    compared.set_a(one)
    compared.set_b(two)
    return compared.headline()


def test_the_headline_compares_real_time_factors() -> None:
    assert headline(take(2.0), None) == ""
    assert headline(take(2.0), take(1.0)) == "B is 2.00× as fast as A (one run each)"
    assert headline(take(1.0), take(1.19)) == "B is 1.19× slower than A (one run each)"
    assert headline(take(1.0), take(1.01)) == "B is about as fast as A (one run each)"
    slower = take(2.0, 4.0, setting=Setting("f5-mini", Values(steps=16)))
    assert headline(take(2.0), slower) == "B is 2.00× as fast as A (one run each)", "per second of audio"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": "Another."}, "text"),
        ({"setting": Setting("lm-mini"), "text": "Another."}, "model and text"),
        ({"voice": "bella"}, "voice"),
        ({"machine": "elsewhere"}, "machine"),
    ],
)
def test_it_is_withheld_with_the_reason_where_the_two_do_not_compare(changes: dict, reason: str) -> None:
    said = headline(take(2.0), take(1.0, **changes))
    assert said == f"No speed-up is given: A and B differ in {reason}."
