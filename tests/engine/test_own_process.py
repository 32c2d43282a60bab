"""Our own modules in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paretone import own_process
from paretone.own_process import command, packaged, run

SENTENCE = "-m runs modules of Paretone alone"


def test_an_installed_module_is_run_by_its_file_from_any_folder(tmp_path: Path) -> None:
    done = subprocess.run(command("paretone.audio.sound_system"), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("paretone-sound:")
    with pytest.raises(ModuleNotFoundError):
        command("engine.no_such_module")


def test_the_packaged_program_runs_it_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not packaged()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "argv", ["paretone"])
    assert command("paretone.audio.sound_system", "x") == [sys.executable, "-m", "paretone.audio.sound_system", "x"]
    assert run(["paretone.audio.sound_system"]) == 0
    assert capsys.readouterr().out.startswith("paretone-sound:")
    for others in ([], ["json.tool"], ["enginee"]):
        assert run(others) == 2
        assert SENTENCE in capsys.readouterr().err


def test_no_other_place_starts_this_interpreter() -> None:
    """Where the packaged program cannot, there is a sentence: see :mod:`paretone.extras`."""
    root = Path(own_process.__file__).parents[2]
    starting = {
        path.relative_to(root).as_posix()
        for folder in ("app", "engine")
        for path in (root / folder).rglob("*.py")
        if "sys.executable" in path.read_text(encoding="utf-8")
    }
    assert starting == {
        "engine/paretone/own_process.py",
        "engine/paretone/extras.py",
    }
