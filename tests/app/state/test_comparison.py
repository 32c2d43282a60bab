"""One headline per comparison: how much faster B is, or why that is not said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Take, repeated
from paretone_app.state.comparison import Comparison


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


def test_a_take_that_was_not_finished_is_not_compared() -> None:
    cut = take(1.0, unfinished="cancelled after 12 of 126 passages")
    assert headline(take(2.0), cut) == "No speed-up is given: B was cancelled after 12 of 126 passages."
    compared = Comparison()
    compared.set_a(cut)
    assert compared.made_with(cut.setting) is None, "a profile quotes no figures of a part"
    compared.set_b(take(2.0))
    assert compared.warning() == "A was cancelled after 12 of 126 passages: their figures cannot be compared."


def test_the_headline_says_from_how_many_runs_it_is_and_that_the_machine_was_busy() -> None:
    run = Measurements(2.0, 2.0, device="cpu", cpu_seconds=1.0, other_seconds=0.0, cores=2)
    one = repeated(take(9.0), [run] * 5)
    two = repeated(take(9.0), [replace(run, seconds=1.0, cpu_seconds=0.8)] * 5)
    assert headline(one, two) == "B is 2.00× as fast as A (medians of 5 runs)"
    busy = repeated(take(9.0), [replace(run, other_seconds=2.0)] * 5)
    said = "B is 2.00× as fast as A (medians of 5 runs; the machine was busy during A: 1.25× in CPU time)"
    assert headline(busy, two) == said


def test_the_tool_tip_says_how_many_runs_are_compared() -> None:
    compared, run = Comparison(), Measurements(2.0, 2.0, device="cpu")
    compared.set_a(take(2.0))
    assert compared.basis() == ""
    compared.set_b(take(1.0))
    assert compared.basis().startswith("Compares real-time factors of one run of each take.")
    compared.set_b(repeated(take(1.0), [run] * 5))
    assert compared.headline().endswith("(A: one run, B: median of 5 runs)")
    assert compared.basis().startswith("Compares real-time factors. A: one run, B: median of 5 runs.")
    compared.set_b(take(1.0, text="Another."))
    assert compared.basis() == "", "no speed-up is given"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "A and B are the same take."),
        ({"id": "two"}, "A and B have the same setting, seed, text and voice: there is no difference to hear."),
        (
            {"setting": Setting("f5-mini", Values(steps=8), seed=3)},
            "A and B have the same setting with different seeds: only their noise differs.",
        ),
        ({"setting": Setting("f5-mini", Values(steps=4))}, "A and B differ in steps, and not in a technique."),
    ],
)
def test_sides_that_differ_in_no_technique_say_so(changes: dict, said: str) -> None:
    compared = Comparison()
    compared.set_a(take(2.0))
    compared.set_b(take(2.0, **changes))
    assert compared.warning() == said
