"""Checking a study's results: right ones agree, and every kind of change is found and named."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import paretone
from paretone import cli, files
from paretone.database import audio_path
from paretone.errors import Cancelled, StudyError
from paretone.studies.execution import TaskRunner
from paretone.studies.store import DATABASE, Store, read_audio
from paretone.studies.verifying import Check, verify
from tests.engine.studies import small
from tests.voices import FIRST

STUDY = f"""
title = "Small"
sentences = ["One sentence.", "Another one."]
voices = ["{FIRST}"]
judges = ["melody"]
[options]
steps = 4
[grid]
steps.steps = [2, 3]
"""
TITLES = ["Records", "Audio", "Definition", "Texts", "Code", "Weights", "Takes made again", "Judges"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("verifying") / "small.toml"
    path.write_text(STUDY, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paretone.models.load_model", small.load)
        assert cli.main(["study", "run", str(path), "--quiet"]) == 0
    return path


@pytest.fixture
def file(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study's file beside its results, to change at will."""
    monkeypatch.setattr("paretone.models.load_model", small.load)
    shutil.copytree(ran.with_suffix(".study"), tmp_path / "small.study")
    copy = Path(shutil.copy(ran, tmp_path))
    in_the_file(copy, "UPDATE study SET file = ?", str(copy))
    return copy


@pytest.fixture
def checked(file: Path) -> Callable[[], dict[str, Check]]:
    return lambda: {one.title: one for one in paretone.verify_study(file.with_suffix(".study"), takes=6)}


def in_the_file(file: Path, command: str, *values: object) -> None:
    connection = sqlite3.connect(file.with_suffix(".study") / DATABASE)
    with connection:
        connection.execute(command, values)
    connection.close()


def first_take(file: Path) -> tuple[str, Path]:
    connection = sqlite3.connect(file.with_suffix(".study") / DATABASE)
    ((take,),) = connection.execute("SELECT min(take) FROM takes")
    connection.close()
    return take, audio_path(file.with_suffix(".study"), take)


def test_a_study_just_run_agrees_in_everything(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (file.with_suffix(".study") / DATABASE).read_bytes()
    capsys.readouterr()
    assert cli.main(["study", "verify", str(file), "--takes", "3", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"✓ {title}" for title in TITLES]
    assert "3 takes made again are the same." in lines[6]
    assert (file.with_suffix(".study") / DATABASE).read_bytes() == before, "nothing is written"


def test_another_recording_is_found(file: Path, checked: Callable, capsys: pytest.CaptureFixture[str]) -> None:
    take, path = first_take(file)
    samples, rate = read_audio(path)
    path.write_bytes(files.wav(np.float32(0.2) * np.sin(np.arange(len(samples), dtype=np.float32) / 20), rate))
    found = checked()
    assert found["Takes made again"].agrees is False and take in found["Takes made again"].detail
    capsys.readouterr()
    assert cli.main(["study", "verify", str(file), "--takes", "6", "--json", "--quiet"]) == 1
    said = capsys.readouterr()
    assert "do not agree: Takes made again." in said.err
    assert json.loads(said.out)["agrees"] is False
    path.write_bytes(path.read_bytes()[:-400])
    assert take in checked()["Audio"].detail


@pytest.mark.parametrize(
    ("command", "values", "title", "said"),
    [
        ("UPDATE study SET checkpoint = ?", ("f" * 64,), "Weights", "was made with the weights"),
        ("UPDATE study SET code = ?", ('["0123456789abcdef"]',), "Code", "was 0123456789abcdef"),
        ("UPDATE takes SET verdicts = ?", ('[["melody", {"range": 9.0}, ""]]',), "Judges", "found range 9 in"),
        ("UPDATE takes SET text = ?", ("Another text.",), "Texts", "Another text."),
        ("UPDATE takes SET seed = seed + ?", (1,), "Records", "is not the one of its setting, sentence and seed"),
        ("UPDATE takes SET machine = ?", ("A; Linux; paretone 0.1.0",), "Code", "paretone 0.1.0"),
        (
            "UPDATE settings SET setting = replace(setting, ?, '\"steps\":5')",
            ('"steps":4',),
            "Records",
            "has the fingerprint",
        ),
    ],
)
def test_what_was_changed_in_the_results_is_named(
    file: Path, checked: Callable, command: str, values: tuple[object, ...], title: str, said: str
) -> None:
    in_the_file(file, command, *values)
    found = checked()[title]
    assert not found.agrees and said in found.detail


def test_a_file_that_was_changed_or_is_gone_is_said(file: Path, checked: Callable) -> None:
    file.write_text(STUDY.replace("[2, 3]", "[2]"), encoding="utf-8")
    assert "has been changed since the study ran" in checked()["Definition"].detail
    file.unlink()
    found = checked()
    assert found["Definition"].agrees is None and found["Takes made again"].agrees


def test_a_study_of_an_earlier_version_has_no_code_to_compare(file: Path, checked: Callable) -> None:
    in_the_file(file, "UPDATE study SET code = '[]'")
    assert checked()["Code"].agrees


def test_nothing_to_check_and_no_study_are_sentences(tmp_path: Path, file: Path) -> None:
    in_the_file(file, "DELETE FROM takes")
    with pytest.raises(StudyError, match="has no takes yet, so there is nothing to check"):
        paretone.verify_study(file.with_suffix(".study"))
    with pytest.raises(StudyError):
        paretone.verify_study(tmp_path / "nothing")


def test_it_obeys_cancel(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(file.with_suffix(".study"), read_only=True) as store, pytest.raises(Cancelled):
        verify(store, lambda equipment: TaskRunner(equipment, small.load), 2, small.Follower(cancel_after=0))
