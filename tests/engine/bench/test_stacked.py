"""The bench of stacked savings: really timed, spoken and judged, on a bundled model."""

from __future__ import annotations

import json

import pytest

from paretone import cli
from paretone.measure.evaluation.judges import judge_named
from tests.prompts import short_prompts  # noqa: F401

pytestmark = pytest.mark.usefixtures("short_prompts")


@pytest.mark.slow
def test_rungs_are_timed_and_judged_against_the_foot(capsys: pytest.CaptureFixture[str]) -> None:
    if problem := judge_named("naturalness").problem() or judge_named("voice").problem():
        pytest.skip(problem)
    given = [
        "--steps",
        "8",
        "--rounds",
        "2",
        "--sentences",
        "2",
        "--precision",
        "float32",
        "--evaluations",
        "2",
    ]
    assert cli.main(["bench", "stacked", "--model", "megatts3-mini", *given, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    foot, few, top, again = report["rows"]
    assert {row["ladder"] for row in report["rows"]} == {"average-velocity"}, "there are no other weights"
    assert [row["rung"] for row in report["rows"]] == [
        "8 steps, intelligibility 1.4, similarity 1.2",
        "+ average velocity, N = 2",
        "+ DiTReducio, δ = 0.1",
        "first, again (A/A)",
    ]
    assert foot["backbone"] == foot["whole take"] == 1 and "verdict" not in foot
    assert few["backbone"] > few["whole take"] > 1, "the vocoder is not faster"
    assert few["ops ratio"] < 0.2 and top["ops ratio"] <= few["ops ratio"]
    assert set(again) == {"ladder", "rung", "backbone", "whole take"}
    assert {row["takes"] for row in (foot, few, top)} == {8}
    assert "heard 2 sentences in 2 voices in turn, 4 takes of each." in report["definition"]
    for row in (foot, few, top):
        assert 1 <= row["naturalness"] <= 5 and row["spread over seeds"] > 0
    assert report["headline"] in (few["backbone"], top["backbone"]), "the ratio is there in any case"
    assert few["verdict"] != "passes" and not report["verdict"].startswith("passes"), "two sentences prove nothing"
    assert all(row["by"] for row in (few, top))
