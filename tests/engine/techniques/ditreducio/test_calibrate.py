"""``paretone calibrate`` shows its trials while it runs."""

import sys
from pathlib import Path

import pytest

from paretone.models.f5.adapter import F5Speech
from tests.engine import small_speech
from tests.engine.command_line import Console
from tests.engine.commands.test_terminal import Screen

FEW = ("calibrate", "--text", "Yes.", "--steps", "4", "--no-evidence")


@pytest.fixture
def model(request: pytest.FixtureRequest) -> F5Speech:
    return small_speech.load("f5-mini", variant=getattr(request, "param", ""))


def test_accepted_trials_are_counted(paretone: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    found = paretone.data(*FEW, "--threshold", "0.01", "--table", tmp_path / "t.json", "--json")
    assert 0 < found["accepted"] < found["trials"]
    assert f"{found['accepted']} of {found['trials']} skips accepted" in screen.getvalue()


@pytest.mark.parametrize("model", ["damaged"], indirect=True)
def test_an_error_that_is_no_number_ends_the_calibration(paretone: Console, tmp_path: Path) -> None:
    said = paretone.refusal(*FEW, "--table", tmp_path / "t.json", "--objective", "end")
    assert "invalid numbers (NaN) at step 2, layer 1" in said


def test_a_share_is_shown_by_itself_and_a_threshold_with_its_range(paretone: Console, tmp_path: Path) -> None:
    share = (*FEW, "--table", tmp_path / "t.json", "--objective", "end", "--operations", "45")
    done = paretone(*share)
    assert "Calibrating for the end at 45 % of the operations" in done.err
    columns = done.out.splitlines()[0]
    assert "budget (%)" in columns and "δ" not in columns
    found = paretone.data(*share, "--json")
    assert (found["objective"], found["operations"], found["threshold"]) == ("end", 45.0, None)
    assert "one budget, --operations" in paretone.refusal(*share, "--thresholds", "0.1", "0.2")
    columns = paretone.out(*FEW, "--table", tmp_path / "t.json", "--threshold", "0.1").splitlines()[0]
    assert "exact range of δ" in columns and "budget" not in columns
