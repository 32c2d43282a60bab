"""The example study: made by a command, packed small, and copied to where the user can run and change it."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from paretone import cli
from paretone.errors import StudyError
from paretone.models import catalogue
from paretone.studies import definition, example
from paretone.studies.results import read
from paretone.studies.store import DATABASE, Store
from paretone.studies.study import results_folder
from tests.engine.studies import small

TEXT = (
    'title = "Tiny"\nsentences = ["One sentence."]\n[options]\nsteps = 4\ncross_fade = 0.0\n[grid]\nsteps.steps = [2]\n'
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of an example of two settings."""
    path = tmp_path / "shipped" / "example.toml"
    path.parent.mkdir()
    path.write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(example, "FILE", path)
    return path


def test_the_command_makes_what_ships(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    assert example.shipped() is None
    results = tmp_path / "made.study"
    assert cli.main(["study", "example", str(file), "--results", str(results)]) == 0, capsys.readouterr().err
    folder = example.shipped()
    assert folder == results_folder(file)
    assert sorted(one.name for one in folder.iterdir()) == ["audio", DATABASE]
    found = read(folder)
    assert [one.finished for one in found.settings] == [1, 1]
    assert all(take.path.is_file() for heard in found.heard.values() for take in heard)
    assert found.file == "" and str(tmp_path).encode() not in (folder / DATABASE).read_bytes()
    # Once more, in the place of the first.
    assert cli.main(["study", "example", "--results", str(results), str(file)]) == 0


@pytest.fixture
def results(file: Path, tmp_path: Path) -> Path:
    """Finished results of the example, not packed yet."""
    folder = tmp_path / "made.study"
    small.finished(folder, definition.read(file))
    return folder


def test_what_is_not_finished_or_too_large_does_not_ship(
    file: Path, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = results_folder(file)
    monkeypatch.setattr(example, "MOST_AUDIO_BYTES", 1000)
    with pytest.raises(StudyError, match="fewer settings or shorter sentences"):
        example.pack(results, target, file)
    monkeypatch.undo()
    file.write_text(TEXT.replace("[2]", "[2, 3]"), encoding="utf-8")
    with pytest.raises(StudyError, match="not finished: 2 of 3 takes"):
        example.pack(results, target, file)
    assert not target.exists() and sorted(one.name for one in file.parent.iterdir()) == [file.name]


def test_the_user_gets_a_copy_that_can_be_changed(file: Path, results: Path, tmp_path: Path) -> None:
    studies = tmp_path / "user" / "studies"
    alone = example.copy_for_user(studies)
    assert alone.suffix == ".toml" and alone.read_bytes() == file.read_bytes(), "there are no results yet"
    example.pack(results, results_folder(file), file)
    folder = example.copy_for_user(studies)
    assert re.fullmatch(r"example-[0-9a-f]{8}\.study", folder.name) and folder != results_folder(alone)
    assert folder.with_suffix(".toml").read_bytes() == file.read_bytes()
    with Store(folder) as store:
        assert len(store.takes()) == 2, "it can be written"
        store.rule_out(store.settings()[1].key, "Changed by the user.")
    assert example.copy_for_user(studies) == folder
    assert read(folder).settings[1].problem == "Changed by the user.", "it is not replaced"
    # A new edition has a copy of its own.
    file.write_text(f"# New.\n{TEXT}", encoding="utf-8")
    assert example.copy_for_user(studies) not in (folder, alone)


def test_a_folder_that_cannot_be_written_is_said(file: Path, tmp_path: Path) -> None:
    (tmp_path / "studies").write_text("no folder", encoding="utf-8")
    with pytest.raises(StudyError, match="could not be copied"):
        example.copy_for_user(tmp_path / "studies")


def test_the_example_can_be_run_and_is_small() -> None:
    study = definition.read(example.FILE)
    assert study.model == "f5-mini" and study.takes <= 20
    assert not re.search(r"^voice.*[\"']", example.FILE.read_text(encoding="utf-8"), re.MULTILINE), "voices change"


def test_what_ships_was_made_with_the_present_model(tmp_path: Path) -> None:
    folder = shutil.copytree(example.shipped(), tmp_path / "copy")
    found, study = read(folder), definition.read(example.FILE)
    weights = catalogue.entry(found.model).folder / "model.safetensors"
    assert found.checkpoint == hashlib.sha256(weights.read_bytes()).hexdigest(), (
        "run: paretone study example resources/studies/example.toml"
    )
    assert {one.key: one.finished for one in found.settings} == dict.fromkeys(
        (one.key for one in study.candidates), study.takes_each
    )
    with sqlite3.connect(folder / DATABASE) as database:
        assert database.execute("SELECT file FROM study").fetchone() == ("",)
