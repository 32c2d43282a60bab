"""``paretone roofline``: the post's table, and the bundled model measured and compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paretone import cli
from tests.engine.command_line import Console
from tests.engine.measure.roofline.known import keep_known_ceilings
from tests.prompts import short_prompts  # noqa: F401

pytestmark = pytest.mark.usefixtures("short_prompts")


@pytest.fixture
def known_ceilings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ceilings that are kept for this machine, so that no test has to measure them."""
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    keep_known_ceilings()


def test_the_posts_table_needs_no_model(tmp_path: Path, console: Console) -> None:
    table = tmp_path / "table.csv"
    out = console.out("roofline", "--published", "--csv", str(table))
    for said in (
        "1,728 launches each (61 per layer)",
        "10.15",
        "0.3224",
        "The floor is 23.9 ms; 55,296 launches take 608 ms",
        "Ceilings in float32: 67,000 GFLOP/s",
    ):
        assert said in out
    assert len([line for line in table.read_text().splitlines() if line[0] != "#"]) == 1 + 7


def test_another_card_is_on_paper(known_ceilings: None, capsys: pytest.CaptureFixture[str], console: Console) -> None:
    options = ["--text", "Rice.", "--steps", "2", "--setting", "steps:steps=1", "--quiet"]
    data = console.data("roofline", *options, "--card", "rtx-4090", "--json")
    assert data["measured_seconds"] == 0 < data["floor_seconds"]
    assert data["ceilings"]["operations"]["float32"] == 82.6e12
    assert all(one["measured_seconds"] is None and one["launches_per_call"] >= 0 for one in data["components"])
    assert "NVIDIA L20 data sheet" in console.out("roofline", "--published", "--card", "l20")
    assert cli.main(["roofline", *options[:2], "--card", "l20", "--technique", "ditreducio"]) != 0
    assert "needs its strategy table" in capsys.readouterr().err
    assert "give one of them" in console.refusal("roofline", "--card", "l20", "--again")


def test_options_change_a_profile_as_they_do_in_speak(known_ceilings: None, tmp_path: Path, console: Console) -> None:
    profile, out = tmp_path / "p.json", str(tmp_path / "a.wav")
    console("speak", "--text", "Rice.", "--steps", "3", "--out", out, "--keep-profile", str(profile), "--quiet")
    asked = ["roofline", "--text", "Rice.", "--profile", str(profile), "--card", "l20", "--quiet", "--json"]
    forwards = [
        next(one for one in console.data(*asked, *more)["phases"] if one["name"] == "evaluation")["forwards"]
        for more in ([], ["--steps", "2"])
    ]
    assert forwards == [3, 2]


@pytest.mark.slow
def test_a_setting_is_measured_and_compared(known_ceilings: None, tmp_path: Path, console: Console) -> None:
    trace = tmp_path / "trace.json"
    options = ["--steps", "2", "--setting", "steps:steps=1", "--compare", "--rounds", "1", "--trace", str(trace)]
    data = console.data("roofline", "--text", "Rice.", *options, "--quiet", "--json")
    forwards = [
        next(one for one in made["phases"] if one["name"] == "evaluation")["forwards"]
        for made in (data, data["baseline"])
    ]
    assert forwards == [1, 2]
    # How much longer than the floor it takes depends on the machine, whose ceilings these are not.
    assert data["measured_seconds"] > 0 and data["baseline"]["measured_seconds"] > 0
    assert 0 < data["floor_seconds"] < data["baseline"]["floor_seconds"]
    assert {one["bound"] for one in data["components"] if one["component"] != "rest"} <= {"compute", "memory", "launch"}
    assert json.loads(trace.read_bytes())["traceEvents"]


def test_a_trace_without_a_folder_is_refused_before_anything_runs(tmp_path: Path, console: Console) -> None:
    assert "does not exist" in console.refusal("roofline", "--trace", str(tmp_path / "no" / "trace.json"))


def test_a_setting_is_a_profile_or_techniques(tmp_path: Path, console: Console) -> None:
    missing, other = str(tmp_path / "missing.json"), str(tmp_path / "other.json")
    assert "missing.json" in console.refusal("roofline", "--setting", missing)
    assert "Give only one profile" in console.refusal("roofline", "--setting", missing, "--setting", other)
    assert console("roofline", "--setting", missing, "--setting", "steps").code != 0
    assert "There is no technique named 'no_such'" in console.refusal("roofline", "--setting", "no_such")
