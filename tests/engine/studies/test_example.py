"""The example study: made by a command, packed small, and copied to where the user can run and change it."""

import errno
import hashlib
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from paretone.errors import StudyError
from paretone.models import catalogue
from paretone.models.llasa import adapter as llasa
from paretone.models.megatts3 import graphemes
from paretone.paths import resource
from paretone.studies import definition, example
from paretone.studies.gains import published_rows
from paretone.studies.results import read
from paretone.studies.running import FINISHED
from paretone.studies.store import DATABASE, Store
from paretone.studies.study import results_folder
from paretone.studies.wording import published_lines
from tests.engine.measure.roofline.test_layouts import LAYOUTS
from tests.engine.studies import small
from tests.tools import example_study
from tests.workload import workload

TEXT = 'title = "Tiny"\nsentences = ["One."]\n[options]\nsteps = 4\ncross_fade = 0.0\n[grid]\nsteps.steps = [2]\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "shipped" / "example.toml"
    path.parent.mkdir()
    path.write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(example, "FILE", path)
    return path


def test_the_command_makes_what_ships(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    assert example.shipped() is None
    made = ["--file", str(file), "--results", str(tmp_path / "made.study")]
    assert example_study.main(made) == 0
    folder = example.shipped()
    assert folder == results_folder(file)
    assert sorted(one.name for one in folder.iterdir()) == ["audio", DATABASE]
    found = read(folder)
    assert [one.finished for one in found.settings] == [1, 1]
    assert all(take.path.is_file() for heard in found.heard.values() for take in heard)
    assert found.file == "" and str(tmp_path).encode() not in (folder / DATABASE).read_bytes()
    # Once more, in the place of the first.
    assert example_study.main(made) == 0


@pytest.fixture
def results(file: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "made.study"
    small.finished(folder, definition.read(file))
    return folder


def test_nothing_unfinished_or_too_large_ships(file: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = results_folder(file)
    monkeypatch.setattr(example_study, "MOST_AUDIO_BYTES", 1000)
    with pytest.raises(StudyError, match="fewer settings or shorter sentences"):
        example_study.pack(results, target, file)
    monkeypatch.undo()
    file.write_text(TEXT.replace("[2]", "[2, 3]"), encoding="utf-8")
    with pytest.raises(StudyError, match="not finished: 2 of 3 takes"):
        example_study.pack(results, target, file)
    assert not target.exists() and sorted(one.name for one in file.parent.iterdir()) == [file.name]


def test_the_user_gets_a_copy_that_can_be_changed(file: Path, results: Path, tmp_path: Path) -> None:
    studies = tmp_path / "user" / "studies"
    alone = example.copy_for_user(studies)
    assert alone.suffix == ".toml" and alone.read_bytes() == file.read_bytes(), "there are no results yet"
    example_study.pack(results, results_folder(file), file)
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


def test_what_cannot_be_copied_is_said(file: Path, results: Path, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "studies").write_text("no folder", encoding="utf-8")
    with pytest.raises(StudyError, match="could not be copied"):
        example.copy_for_user(tmp_path / "studies")
    example_study.pack(results, results_folder(file), file)
    monkeypatch.setattr("shutil.copyfile", Mock(side_effect=OSError(errno.ENOSPC, "")))
    with pytest.raises(StudyError, match=f"copied to {tmp_path / 'full'}: the disk is full; free some space.$"):
        example.copy_for_user(tmp_path / "full")


def test_the_example_can_be_run_and_is_small() -> None:
    study = definition.read(example.FILE)
    assert study.model == "f5-mini" and study.takes <= 20
    assert not re.search(r"^voice.*[\"']", example.FILE.read_text(encoding="utf-8"), re.MULTILINE), "voices change"


def test_what_ships_was_made_with_the_present_model(tmp_path: Path) -> None:
    folder = shutil.copytree(example.shipped(), tmp_path / "copy")
    found, study = read(folder), definition.read(example.FILE)
    weights = catalogue.entry(found.model).folder / "model.safetensors"
    assert found.checkpoint == hashlib.sha256(weights.read_bytes()).hexdigest(), "python -m tests.tools.example_study"
    assert {one.key: one.finished for one in found.settings} == {one.key: study.takes_each for one in study.candidates}
    with sqlite3.connect(folder / DATABASE) as database:
        assert database.execute("SELECT file FROM study").fetchone() == ("",)


# --- The papers' tables -----------------------------------------------------------------------------------------------
FILES = sorted(resource("studies", "papers").glob("*.toml"))
OFFICIAL = [one for one in FILES if definition.values(one).get("published") == one.stem]
QUICKEST = [one for one in OFFICIAL if one.stem in ("cfg-free-table-1", "spade-table-1-cosyvoice2")]
LACKING = {
    "cfg-free-table-1": "train",
    "spade-table-2": "has no weights for SPADE (fewer layers) yet",
    "spade-table-1-cosyvoice2": "has been trained yet; train one",
    "spade-table-1-llasa": "has been trained yet; train one",
    "ssd-tables-1-to-3": "train one first",
    "omnivoice-first-audio": "NVIDIA GPU",
}
"""What the settings without takes say, where weights have to be trained first or a card is needed."""


def values(file: Path, **changes: object) -> dict[str, Any]:
    given = {**definition.values(file), **changes}
    return {name: value for name, value in given.items() if value is not None}


@pytest.mark.parametrize("file", OFFICIAL, ids=lambda one: one.stem)
def test_every_published_row_has_its_setting(file: Path) -> None:
    given = values(file)
    names = {one["name"] for one in given["setting"]}
    assert names == {one.label for one in published_rows(given["published"])}


@pytest.mark.parametrize("file", [one for one in FILES if one not in OFFICIAL], ids=lambda one: one.stem)
def test_a_bundled_model_has_the_same_table(file: Path) -> None:
    twin = next(one for one in OFFICIAL if file.stem.startswith((one.stem, "spade-table-1")))
    study = definition.read(file)
    assert all(one.setting.model == study.model for one in study.candidates)
    if "spade" not in file.stem:  # LM mini's depths are its own.
        assert values(file)["published"] == twin.stem
        assert [one["name"] for one in values(file)["setting"]] == [one["name"] for one in values(twin)["setting"]]


@pytest.mark.slow
@pytest.mark.parametrize("file", workload(OFFICIAL, QUICKEST), ids=lambda one: one.stem)
def test_it_runs_on_a_small_official_checkpoint(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Random weights end when they like, or not at all.
    monkeypatch.setattr(llasa, "CONTEXT", 200)
    monkeypatch.setattr(graphemes, "LONGEST", 6)
    given = values(file)
    name = {"F5TTS_v1_Base": "f5-mini"}.get(given["model"], given["model"])
    model, voice, _ = LAYOUTS[name](tmp_path / "models")
    if voice.id == "own":
        given["voices"] = [{"audio": voice.audio, "transcript": voice.transcript}]
    elif "voices" in given:
        given["voices"] = 1
    few = given["setting"][: workload(None, 2)]
    for one in few:  # The small models have three layers.
        if spade := one.get("techniques", {}).get("spade"):
            spade["depth"] = 2 if spade["depth"] > 9 else 1
    if "steps" in given.get("options", {}):
        given["options"]["steps"] = 4
    if name.startswith("Llasa"):  # The small release has no encoder for recordings.
        given["options"] = {"clone": False}
    given |= {"folder": str(tmp_path / "models" / name), "setting": few, "sentences": ["Rice."], "judges": []}
    study = definition.parse({**given, "count": 1, "rounds": min(2, given.get("rounds", 1)), "seeds": [0]})
    assert small.finished(tmp_path / "results", study, load=lambda *_, **__: model) == FINISHED
    found = read(tmp_path / "results")
    assert found.settings[0].finished, found.failures
    for one in found.settings:
        assert one.finished or LACKING[file.stem] in one.problem, one.problem
    lines = published_lines(found)
    assert len(lines) == 1 + len(published_rows(given["published"]))
    times = ("RTF", "Backbone RTF", "TTFA (P90)") if file.stem != "spade-table-2" else ("not measured",)
    assert ": published " in lines[1] and any(f"here {one}" in lines[1] for one in times)
