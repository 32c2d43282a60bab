"""The doctor says what is there, what is not, and what to do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from paretone import computing, doctor, extras
from paretone.cli import main
from paretone.doctor import GOOD, NOTE, PROBLEM, Check, as_text, examine, private, shareable


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's data folder, and commands of the system that say nothing."""
    folder = tmp_path / "someone" / "data"
    monkeypatch.setenv("PARETONE_DATA", str(folder))
    return folder


def found(name: str, devices: tuple[str, ...] = ("cpu",)) -> Check:
    return next(one for one in examine(devices) if one.name == name)


def test_this_installation_is_described(data: Path) -> None:
    checks = {one.name: one for one in examine(("cpu",))}
    assert checks["Paretone"].state == checks["Python"].state == checks["PyTorch"].state == GOOD
    assert "models run on cpu" in checks["PyTorch"].found
    assert checks["Bundled models"].found == "F5 mini, MegaTTS 3 mini, LM mini, Omni mini"
    assert str(data) in checks["Data folder"].found and "GiB free" in checks["Data folder"].found
    assert all(one.advice for one in checks.values() if one.state != GOOD)


def test_a_card_that_is_not_used_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "graphics_card", lambda: "NVIDIA H100")
    monkeypatch.setattr(computing, "cuda_of_torch", lambda: "")
    card = found("Graphics card")
    assert card.state == PROBLEM and card.found == "NVIDIA H100 is not used: this is PyTorch's build for processors"
    assert "--force-reinstall torch==" in card.advice
    monkeypatch.setattr(computing, "cuda_of_torch", lambda: "13.0")
    assert "PyTorch cannot use NVIDIA H100" in found("Graphics card").found
    assert not [one for one in examine(("cuda", "cpu")) if one.name == "Graphics card"], "it is used"
    monkeypatch.setattr(computing, "graphics_card", lambda: "")
    none = found("Graphics card")
    assert (none.state, none.found, none.advice) == (GOOD, "none is used: no NVIDIA card was found", "")
    monkeypatch.setattr(doctor, "version_of", lambda package: "")
    assert found("PyTorch").state == PROBLEM


def test_the_packaged_program_says_what_it_is_and_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(computing, "graphics_card", lambda: "NVIDIA H100")
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert "the packaged program" in found("Paretone").found
    assert "the packaged program" in found("Graphics card").found
    assert "uv tool install" in found("Graphics card").advice
    advice = found("LLaSA: its texts and its voices").advice
    assert "cannot add it" in advice and "'llasa'" in advice and "pip install" not in advice


def test_folders_without_room_or_that_cannot_be_written(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data.parent.mkdir(parents=True)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 10 * 2**20}))
    assert found("Data folder").state == PROBLEM and "Make room" in found("Data folder").advice
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 2**30}))
    assert found("Data folder").state == NOTE
    monkeypatch.setattr(doctor.os, "access", lambda place, mode: False)
    assert "cannot be written" in found("Data folder").found and "PARETONE_DATA" in found("Data folder").advice
    monkeypatch.undo()
    monkeypatch.setenv("PARETONE_DATA", str(data))
    data.write_text("a file")
    assert "is a file" in found("Data folder").found
    data.unlink()
    (data / "takes").mkdir(parents=True)
    (data / "takes" / "audio").symlink_to(data)
    assert "symbolic link" in found("Take library").found


def test_a_report_names_no_private_folder(data: Path) -> None:
    checks = (
        Check("Data folder", GOOD, f"{data}/takes, 3 GiB free"),
        Check("Sound", PROBLEM, f"{Path.home()}/.asoundrc"),
    )
    told = as_text(shareable(checks))
    assert told.splitlines()[:2] == ["✓ Data folder: DATA/takes, 3 GiB free", "✗ Sound: ~/.asoundrc"]
    assert "One problem was found (✗)." in told and str(data) not in told
    assert private("nothing of anybody's") == "nothing of anybody's"


def test_the_command(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--share"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one["state"] for one in told["checks"]} <= {GOOD, NOTE, PROBLEM}
    assert told["problems"] == sum(one["state"] == PROBLEM for one in told["checks"])
    assert str(data) not in json.dumps(told)
    assert main(["doctor"]) == 0
    assert str(data) in capsys.readouterr().out
