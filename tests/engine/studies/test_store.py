"""A study's file: damage, other versions, other programs, other definitions."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import paretone
from paretone import cli, files
from paretone.database import Database, audio_path
from paretone.errors import Cancelled, StudyError
from paretone.models.catalogue import entry
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.library import Library
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies import store as module
from paretone.studies.execution import TaskRunner
from paretone.studies.report import write_report
from paretone.studies.results import read
from paretone.studies.store import DATABASE, Store, StoredTrial, StudyDamaged, read_audio
from paretone.studies.study import Candidate
from paretone.studies.verifying import Check, verify
from tests.app.damage import spoil_database
from tests.engine.command_line import Console
from tests.engine.studies import small
from tests.engine.studies.small import Follower, finished, sql, study
from tests.voices import FIRST


def test_what_a_crash_leaves_behind_is_removed(tmp_path: Path) -> None:
    finished(tmp_path)
    stray = tmp_path / "audio" / f"{'ab' * 16}.wav"
    stray.write_bytes(b"half of a take")
    with Store(tmp_path) as store:
        assert not stray.exists()
        assert len(list((tmp_path / "audio").iterdir())) == len(store.takes()) == 9


@pytest.mark.parametrize("kind", [Store, Library])
@pytest.mark.parametrize("name", ["audio", "file", "log"])
def test_nothing_is_written_or_deleted_through_a_link(tmp_path: Path, kind: type[Database], name: str) -> None:
    other, folder = tmp_path / "other", tmp_path / "s"
    other.mkdir()
    folder.mkdir()
    kind(other).close()
    (other / "audio" / f"{'ab' * 16}.wav").write_bytes(b"somebody's own")
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    link = {"audio": "audio", "file": kind.file, "log": f"{kind.file}-wal"}[name]
    (folder / link).symlink_to(other / link)
    with pytest.raises(kind.error, match=f"{link} is a symbolic link, and nothing is written or deleted"):
        kind(folder)
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before
    assert [path.name for path in folder.iterdir()] == [link]
    # The whole folder may lie elsewhere, where its owner wants it.
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    kind(tmp_path / "linked").close()
    assert (tmp_path / "elsewhere" / kind.file).is_file()


def test_of_a_link_among_the_recordings_only_the_link_goes(tmp_path: Path) -> None:
    finished(tmp_path / "s")
    theirs = tmp_path / "theirs.wav"
    theirs.write_bytes(b"somebody's own")
    stray = tmp_path / "s" / "audio" / f"{'ab' * 16}.wav"
    stray.symlink_to(theirs)
    kept = next(path for path in (tmp_path / "s" / "audio").iterdir() if not path.is_symlink())
    content = kept.read_bytes()
    kept.unlink()
    kept.symlink_to(theirs)
    folder = tmp_path / "s" / "audio" / f"{'cd' * 16}.wav"
    folder.mkdir()
    finished(tmp_path / "s")
    assert not stray.is_symlink() and folder.is_dir()
    assert not kept.is_symlink() and kept.read_bytes() == content
    assert theirs.read_bytes() == b"somebody's own"


def test_neither_the_lock_nor_the_report_goes_through_a_link(tmp_path: Path) -> None:
    finished(tmp_path / "s")
    other, report, lock = tmp_path / "other", tmp_path / "s" / "report", tmp_path / "s" / "running.sqlite"
    other.mkdir()
    report.symlink_to(other)
    with pytest.raises(StudyError, match="report is a symbolic link, and nothing is written through one"):
        write_report(read(tmp_path / "s"), report)
    assert cli.main(["study", "export", str(tmp_path / "s"), "--quiet"]) == StudyError.exit_code
    lock.unlink()
    lock.symlink_to(other / "lock.sqlite")
    with pytest.raises(StudyError, match=r"running\.sqlite is a symbolic link, and nothing is written through one"):
        finished(tmp_path / "s")
    assert list(other.iterdir()) == []


def test_a_definition_may_grow_but_not_change_its_model(tmp_path: Path) -> None:
    finished(tmp_path)
    follower = Follower()
    finished(tmp_path, study(grid={"steps.steps": [2, 3, 5]}, title="Larger"), follower)
    assert len(follower.takes) == 3
    found = read(tmp_path)
    assert found.title == "Larger" and len(found.settings) == 4
    with Store(tmp_path) as store, pytest.raises(StudyError, match="is for the model 'f5-mini', not 'megatts3-mini'"):
        store.begin(study(model="megatts3-mini", options=None))


def test_a_newer_study_is_left_alone(tmp_path: Path) -> None:
    finished(tmp_path)
    newer = len(module.MIGRATIONS) + 1
    sql(tmp_path, f"PRAGMA user_version = {newer}")
    with pytest.raises(StudyError, match=rf"The study in .* newer Paretone \(schema {newer}, this one knows"):
        Store(tmp_path)


def test_a_study_is_no_take_library(tmp_path: Path) -> None:
    with Library(tmp_path):
        pass
    (tmp_path / "takes.sqlite").rename(tmp_path / DATABASE)
    with pytest.raises(StudyError, match="belongs to another program"):
        Store(tmp_path)
    with pytest.raises(StudyError, match="There is no study in"):
        read(tmp_path / "nowhere")


def test_a_damaged_study_is_opened_for_reading_and_can_be_set_aside(tmp_path: Path) -> None:
    finished(tmp_path, study(sentences=[f"Sentence {number}." for number in range(8)]))
    sql(tmp_path, "CREATE INDEX takes_by_text ON takes (text)")
    spoil_database(tmp_path / DATABASE, "takes_by_text")
    with Store(tmp_path) as damaged:
        assert damaged.damage and len(damaged.takes()) == 24
        with pytest.raises(StudyError, match="can only be read because it is damaged"):
            damaged.begin(study())
    assert read(tmp_path).damage
    backup = Store.set_aside(tmp_path)
    assert len(list((backup / "audio").iterdir())) == 24 and len(read(backup).settings) == 3
    with Store(tmp_path) as fresh:
        assert fresh.takes() == ()


# --- What others put into a study's file ------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("told") / "s"
    finished(folder)
    with Store(folder) as store:
        store.put_trial(StoredTrial(0, {"steps": 2}, store.settings()[0].key, "complete", {"values": [1.0]}))
        store.add_failure(store.takes()[0].cell, "A sentence.")
    return folder


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("text", b"\x00\x01"),
        ("clock_seconds", float("inf")),
        ("measurements", '{"seconds": "long"}'),
        ("measurements", '{"seconds": 1e999}'),
        ("measurements", "[]"),
        ("metrics", '{"loudness": {}}'),
        ("verdicts", '[["words", {"edits": "many"}, ""]]'),
        ("verdicts", '["ab"]'),
        ("notes", "[1]"),
    ],
)
def test_other_types_are_damage(told: Path, tmp_path: Path, column: str, value: object, console: Console) -> None:
    folder = Path(shutil.copytree(told, tmp_path / "s"))
    with closing(sqlite3.connect(folder / DATABASE)) as direct, direct:
        direct.execute("PRAGMA ignore_check_constraints = ON")
        assert direct.execute(f"UPDATE takes SET {column} = ?", (value,)).rowcount
    for action in ("status", "export", "run"):
        said = console.refusal("study", action, folder, "--results", folder, "--quiet", code=StudyError.exit_code)
        assert "Traceback" not in said
        if action != "run":
            assert "study.sqlite is damaged (" in said and "paretone study set-aside" in said and said.count("\n") == 1


def test_what_is_no_number_counts_as_not_measured(told: Path, tmp_path: Path, console: Console) -> None:
    folder = Path(shutil.copytree(told, tmp_path / "s"))
    sql(folder, "UPDATE takes SET metrics = ?", '{"loudness": NaN, "true_peak": Infinity, "silence": 0.5}')
    sql(folder, "UPDATE takes SET verdicts = ?", '[["words", {"edits": NaN, "words": 3}, ""]]')
    figures = console.data("study", "status", folder, "--json")["settings"][0]["figures"]
    assert "silence" in figures and "loudness" not in figures


def test_every_column_of_every_table_is_looked_at(told: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(told / DATABASE)) as direct:
        tables = [name for (name,) in direct.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        columns = [
            (table, name, kind)
            for table in tables
            if direct.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for _, name, kind, *_ in direct.execute(f"PRAGMA table_info({table})")
        ]
    assert {table for table, *_ in columns} >= {"study", "settings", "takes", "failures", "trials", "spectrograms"}
    for table, name, kind in columns:
        if (table, name) in (("study", "one"), ("trials", "number")):
            continue  # SQLite itself keeps everything but whole numbers out of these.
        folder = Path(shutil.copytree(told, tmp_path / f"{table}.{name}"))
        with closing(sqlite3.connect(folder / DATABASE)) as direct, direct:
            value = "text" if kind == "BLOB" else b"\x00"
            direct.execute(f"UPDATE OR REPLACE {table} SET {name} = ?", (value,))
        with pytest.raises(StudyDamaged, match=rf"{table}\.{name} holds a value of type"):
            read(folder)


@pytest.mark.parametrize(
    ("kind", "make", "words", "suffix", "read_only"),
    [
        (Store, os.mkfifo, "it is a pipe", "", True),
        (Store, os.mkdir, "it is a folder", "-wal", False),
        (Library, os.mkfifo, "it is a pipe", "-wal", True),
        (Library, os.mkdir, "it is a folder", "", False),
    ],
)
def test_a_database_that_is_no_file_says_what_it_is(
    tmp_path: Path, kind: type[Database], make: Callable, words: str, suffix: str, read_only: bool
) -> None:
    name = f"{kind.file}{suffix}"
    kind(tmp_path).close()
    (tmp_path / name).unlink(missing_ok=True)
    make(tmp_path / name)
    with pytest.raises(kind.damaged, match=f"could not be opened: {name}: {words}. Set it aside"):
        kind(tmp_path, read_only=read_only)


# --- Verifying --------------------------------------------------------------------------------------------------------
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
MISHEARD = '[["words", {"edits": 7.0, "words": 2.0}, "one sentence"]]'
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
    sql(file.with_suffix(".study"), command, *values)


def test_a_study_just_run_agrees_in_everything(file: Path, console: Console) -> None:
    before = (file.with_suffix(".study") / DATABASE).read_bytes()
    lines = console.out("study", "verify", file, "--takes", 3, "--quiet").splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"✓ {title}" for title in TITLES]
    assert "3 takes made again: the same." in lines[6]
    assert (file.with_suffix(".study") / DATABASE).read_bytes() == before, "nothing is written"


def test_takes_that_follow_measured_times_are_not_made_again(
    checked: Callable[[], dict[str, Check]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for adaptive in (True, False):
        drafted = UsedTechnique("speculative", Values(adaptive=adaptive))
        setting = Setting("lm-mini", entry("lm-mini").default_options, (drafted,))
        assert Candidate(setting, "grid").fixed_by_seed is not adaptive
    monkeypatch.setattr(Candidate, "fixed_by_seed", False)
    found = checked()["Takes made again"]
    assert found.agrees is None and "some follow measured times" in found.detail


@pytest.mark.parametrize("judge", ["words", "whisper", "paraformer"])
def test_errors_are_counted_again_in_every_transcript(file: Path, judge: str) -> None:
    heard = "One, Sentence!" if judge == "whisper" else "one sentence"
    right = f'[["{judge}", {{"edits": 0.0, "words": 2.0}}, "{heard}"]]'
    in_the_file(file, "UPDATE takes SET verdicts = ? WHERE text = 'One sentence.'", right)
    in_the_file(file, "UPDATE takes SET verdicts = ? WHERE text != 'One sentence.'", right.replace("0.0", "2.0"))

    def normaliser() -> Check:
        with Store(file.with_suffix(".study")) as store:  # The judges may not be installed.
            found = verify(store, lambda asked: TaskRunner(replace(asked, judges=()), small.load), 0, Observer())
            return next(one for one in found if one.title == "Normaliser")

    check = normaliser()
    assert check.agrees and "The errors in " in check.detail, check.detail
    in_the_file(file, "UPDATE takes SET verdicts = replace(verdicts, '2.0}', '1.0}')")
    check = normaliser()
    assert check.agrees is False and f"the judge {judge} found words 1" in check.detail


def test_another_recording_is_found(file: Path, checked: Callable, console: Console) -> None:
    ((take,),) = sql(file.with_suffix(".study"), "SELECT min(take) FROM takes")
    path = audio_path(file.with_suffix(".study"), take)
    samples, rate = read_audio(path)
    path.write_bytes(files.wav(np.float32(0.2) * np.sin(np.arange(len(samples), dtype=np.float32) / 20), rate))
    found = checked()
    assert found["Takes made again"].agrees is False and take in found["Takes made again"].detail
    said = console("study", "verify", file, "--takes", 6, "--json", "--quiet")
    assert said.code == 1 and "do not agree: Takes made again." in said.err and said.data["agrees"] is False
    path.write_bytes(path.read_bytes()[:-400])
    assert take in checked()["Audio"].detail


@pytest.mark.parametrize(
    ("change", "value", "title", "said"),
    [
        ("study SET checkpoint = ?", "f" * 64, "Weights", "was made with the weights"),
        ("study SET code = ?", '["0123456789abcdef"]', "Code", "was 0123456789abcdef"),
        ("takes SET verdicts = ?", '[["melody", {"range": 9.0}, ""]]', "Judges", "found range 9 in"),
        ("takes SET verdicts = ?", MISHEARD, "Normaliser", "the judge words found edits 7 in"),
        ("takes SET text = ?", "Another text.", "Texts", "Another text."),
        ("takes SET seed = seed + ?", 1, "Records", "is not the one of its setting, sentence and seed"),
        ("takes SET machine = ?", "A; Linux; paretone 0.1.0", "Code", "paretone 0.1.0"),
        ("settings SET setting = replace(setting, ?, '\"steps\":5')", '"steps":4', "Records", "has the fingerprint"),
    ],
)
def test_changes_are_named(file: Path, checked: Callable, change: str, value: object, title: str, said: str) -> None:
    in_the_file(file, f"UPDATE {change}", value)
    found = checked()[title]
    assert not found.agrees and said in found.detail


def test_a_file_that_was_changed_or_is_gone_is_said(file: Path, checked: Callable) -> None:
    file.write_text(STUDY.replace("[2, 3]", "[2]"), encoding="utf-8")
    assert "has been changed since the study ran" in checked()["Definition"].detail
    file.unlink()
    found = checked()
    assert found["Definition"].agrees is None and found["Takes made again"].agrees
    in_the_file(file, "UPDATE study SET code = '[]'")
    assert checked()["Code"].agrees, "a study of an earlier version has no code to compare"


def test_nothing_to_check_and_no_study_are_sentences(tmp_path: Path, file: Path) -> None:
    in_the_file(file, "DELETE FROM takes")
    with pytest.raises(StudyError, match="has no takes yet, so there is nothing to check"):
        paretone.verify_study(file.with_suffix(".study"))
    with pytest.raises(StudyError):
        paretone.verify_study(tmp_path / "nothing")


def test_it_obeys_cancel(file: Path) -> None:
    with Store(file.with_suffix(".study"), read_only=True) as store, pytest.raises(Cancelled):
        verify(store, lambda equipment: TaskRunner(equipment, small.load), 2, small.Follower(cancel_after=0))
