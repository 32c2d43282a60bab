"""What passes against a baseline, and what it fails by."""

from __future__ import annotations

import pytest

from engine.bench.qualities import failing

BASELINE = {
    "word error rate": 0.01,
    "naturalness": 4.0,
    "spread over seeds": 0.08,
    "pitch range": 0.2,
    "similarity": 0.8,
}


def test_what_keeps_everything_passes_up_to_the_limits() -> None:
    assert failing(BASELINE, BASELINE) == ()
    least = {
        "word error rate": 0.0199,
        "naturalness": 3.851,
        "spread over seeds": 0.0681,
        "pitch range": 0.1801,
        "similarity": 0.781,
    }
    assert failing(least, BASELINE) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("word error rate", 0.0201),
        ("naturalness", 3.84),
        ("spread over seeds", 0.067),
        ("spread over seeds", None),
        ("pitch range", 0.179),
        ("similarity", 0.779),
        ("pitch range", float("nan")),
    ],
)
def test_what_loses_one_thing_fails_by_it(name: str, value: float | None) -> None:
    assert failing({**BASELINE, name: value}, BASELINE) == (name,)
