"""``paretone study`` on the small model: run, status, export, and what it says when it cannot."""

import base64
import csv
import html
import io
import os
import re
import shutil
import signal
import sqlite3
import stat
import tomllib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from xml.etree import ElementTree

import pytest
import soundfile

from paretone import cli
from paretone.errors import StudyError
from paretone.listening import trials
from paretone.studies.results import read
from paretone.studies.running import LOCK, alone_with
from paretone.studies.store import DATABASE, Store
from tests.app.damage import spoil_database
from tests.engine.command_line import Console
from tests.engine.listening.listeners import BASELINE, FAST, abx_trial
from tests.engine.studies import small
from tests.voices import FIRST, SECOND

STUDY = f"""
title = "Small & <quick>"
sentences = ["One sentence.", "Another one."]
voices = ["{FIRST}", "{SECOND}"]
[options]
steps = 4
cross_fade = 0.0
[grid]
steps.steps = ["off", 2, 3]
first_block.threshold = ["off", 0.5]
"""
SEARCH = """
title = "Search"
sentences = ["One sentence."]
[options]
steps = 4
[search]
trials = 4
objectives = ["ops_ratio"]
space.steps.steps = { low = 1, high = 4 }
[[search.constraint]]
metric = "log_mel_distance"
at_most = 1.0
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("paretone.models.load_model", small.load)
    path = tmp_path / "small study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def test_run_status_and_export(file: Path, console: Console) -> None:
    ran = console("study", "run", file)
    assert ran.code == 0, ran.err
    assert "24 takes were made" in ran.out
    assert "Step pruning 2" in ran.out
    assert "Making takes" in ran.err
    data = console.data("study", "run", file, "--json", "--quiet")
    assert (data["state"], data["made"]) == ("finished", 0)
    assert [one["takes"] for one in data["settings"]] == [4] * 6
    assert data["settings"][0]["figures"]["speed_up"]["value"] == 1.0
    status = console.out("study", "status", file)
    assert "95 % intervals by bootstrap" in status
    folder = file.with_suffix(".study")
    assert console.out("study", "status", folder) == status

    heard = file.parent / "heard"
    record = replace(FAST, setting=read(folder).settings[-1].setting.to_json())
    for number in range(1, 17):
        trials.append(abx_trial("s", number, conditions=(BASELINE, record)), heard)
    files = [Path(one) for one in console.data("study", "export", folder, "--json", "--listening", heard)["files"]]
    assert [path.name for path in files] == ["report.html", "results.csv", "takes.csv", "results.tex"]
    assert all(path.parent == folder / "report" for path in files)
    page, results, takes, latex = (path.read_text(encoding="utf-8") for path in files)
    assert_self_contained(page)
    assert "Small &amp; &lt;quick&gt;" in page
    assert page.count("<audio") == 24
    assert "Predictions and listeners" in page and "ABX, share of right answers" in page
    assert "paretone study run 'small study.toml'" in html.unescape(page)
    # The study's own file is in the page, as it can be saved and run again.
    again = html.unescape(re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)[-1])
    assert tomllib.loads(again) == tomllib.loads(file.read_text(encoding="utf-8"))
    rows = list(csv.DictReader(io.StringIO(results)))
    assert len(rows) == 6
    assert float(rows[0]["speed_up"]) == 1.0
    assert float(rows[1]["log_mel_distance_low"]) <= float(rows[1]["log_mel_distance"])
    lines = list(csv.DictReader(io.StringIO(takes)))
    assert len(lines) == 24
    for line in lines:
        assert (folder / line["audio"]).is_file()
    assert latex.count("\\\\\n") == 7
    assert "Step pruning 2" in latex
    assert latex.count(" & ") == 7 * latex.splitlines()[3].count(" & ")


def assert_self_contained(page: str) -> None:
    """Nothing is fetched from anywhere; figures are SVG; what can be heard is what was made."""
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", page)
    figures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert figures
    roots = [ElementTree.fromstring(figure) for figure in figures]
    titles = {root.get("aria-label"): len(root.findall(".//{http://www.w3.org/2000/svg}title")) for root in roots}
    assert titles.pop("Log-mel distance (nat. log) against Speed-up (times)") == 6
    # Over the steps: two of them with and without the other technique, and what each is without fewer steps.
    assert titles and set(titles.values()) == {6} and all(str(name).endswith(" over Steps") for name in titles)
    encoded = re.search(r"data:audio/flac;base64,([^\"]+)", page)
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(encoded[1])))
    assert rate == 24_000 and len(samples) > 2000


def test_a_search_is_answered(tmp_path: Path, file: Path, console: Console) -> None:
    path = tmp_path / "search.toml"
    path.write_text(SEARCH, encoding="utf-8")
    out = console.out("study", "run", path)
    assert "The setting with the lowest Ops ratio whose Log-mel distance is at most 1." in out
    assert re.search(r"4 trials were evaluated, of which 0 meet the constraints and [1-4] may meet them\.", out), out
    assert "None is certain to meet them" in out, "one sentence has no interval"
    assert "of computing" in out
    assert not re.search(r"\([\d.]+–[\d.]+\)", out), "one sentence has no interval"
    assert console.data("study", "status", path, "--json")["answer"]
    console.out("study", "export", path)
    assert "<h2>Answer</h2>" in (path.with_suffix(".study") / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("batch", [1, 4])
def test_a_signal_keeps_and_counts_what_is_finished(
    file: Path, console: Console, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    from paretone.studies.execution import TaskRunner

    def interrupted(*heard: object) -> tuple[()]:
        if next(made) == 5:
            signal.raise_signal(signal.SIGTERM)
        return ()

    made = count(1)
    file.write_text(f"batch = {batch}\n{file.read_text()}")
    with monkeypatch.context() as patched:
        patched.setattr(TaskRunner, "hear", interrupted)
        err = console.refusal("study", "run", file, code=cli.TERMINATED)
    assert "Stopped after 5 of 24 tasks, all of which are kept; run the same command to resume." in err
    with Store(file.with_suffix(".study")) as store:
        assert len(store.takes()) == 5
    assert "19 takes were made" in console.out("study", "run", file)


@pytest.mark.parametrize(
    ("change", "arguments", "code", "sentence"),
    [
        (("", ""), ("status",), 10, "has not been run yet; run it first: paretone study run "),
        (("sentences =", 'seeds = "papers"\nsentences ='), ("verify",), 10, "did you mean 'paper'?"),
        (("", ""), ("run", "--workers", "2"), 10, "--workers needs --ray"),
        (("", ""), ("export", "--listening", "nowhere"), 10, "There is no folder nowhere with listening tests"),
        (('title = "Small', 'judges = ["utmos"]\ntitle = "Small'), ("run",), 10, "Naturalness (UTMOS22 strong)"),
    ],
)
def test_what_cannot_be_done_is_said(
    file: Path, console: Console, change: tuple[str, str], arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    file.write_text(STUDY.replace(*change) if change[0] else STUDY, encoding="utf-8")
    assert sentence in console.refusal("study", arguments[0], file, *arguments[1:], code=code)
    assert not file.with_suffix(".study").exists()


def test_damaged_results_are_set_aside(file: Path, console: Console) -> None:
    console.out("study", "run", file)
    folder = file.with_suffix(".study")
    assert "is not damaged, so it stays where it is" in console.refusal("study", "set-aside", file)
    with closing(sqlite3.connect(folder / DATABASE)) as direct, direct:
        direct.execute("CREATE INDEX takes_by_text ON takes (text)")
    spoil_database(folder / DATABASE, "takes_by_text")
    out = console.out("study", "status", file)
    assert "is damaged and read-only" in out and f"paretone study set-aside '{folder}'" in out
    assert console.refusal("study", "run", file)
    backup = Path(console.data("study", "set-aside", folder, "--json")["folder"])
    assert backup.parent == folder
    assert len(list((backup / "audio").iterdir())) == 24
    assert "24 takes were made" in console.out("study", "run", file)
    spoil_database(folder / DATABASE)
    for action in ("status", "run"):
        err = console.refusal("study", action, file)
        assert "is damaged" in err and "paretone study set-aside" in err
    console.out("study", "set-aside", file)


def _another(place: Path) -> None:
    with closing(sqlite3.connect(place)) as direct, direct:
        direct.execute(f"PRAGMA application_id = {Store.application}")
        direct.execute("CREATE TABLE others (name TEXT)")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such things in folders")
@pytest.mark.parametrize(
    ("name", "lay"),
    [
        (DATABASE, os.mkfifo),
        (DATABASE, Path.mkdir),
        (DATABASE, _another),
        (f"{DATABASE}-wal", os.mkfifo),
        ("audio", lambda place: place.write_text("no folder")),
    ],
    ids=["pipe", "folder", "other tables", "log a pipe", "audio a file"],
)
def test_whatever_lies_there_is_set_aside(
    tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch, name: str, lay: Callable[[Path], object]
) -> None:
    """Without opening it: a pipe would wait for ever."""
    monkeypatch.chdir(tmp_path)
    folder = Path("s.study")
    folder.mkdir()
    if name != DATABASE:
        Store(folder).close()
        shutil.rmtree(folder / "audio")
    lay(folder / name)
    kind = stat.S_IFMT((folder / name).lstat().st_mode)
    err = console.refusal("study", "status", folder, code=StudyError.exit_code)
    assert err.count("\n") == 1
    assert f"To set it aside, run: paretone study set-aside {folder}" in err
    os.mkfifo(folder / LOCK)
    backup = Path(console.data("study", "set-aside", folder, "--json")["folder"])
    assert backup.parent == folder
    assert stat.S_IFMT((backup / name).lstat().st_mode) == kind
    assert {one.name for one in folder.iterdir()} == {backup.name}
    Store(folder).close()
    with alone_with(folder):
        pass


def test_audio_that_was_lost_is_told_and_made_again(file: Path, console: Console) -> None:
    console.out("study", "run", file)
    folder = file.with_suffix(".study")
    first, second, *_ = sorted((folder / "audio").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:100])
    sentence = "The audio of 2 takes is lost or damaged; their figures are kept. Run the study to make them again."
    assert sentence in console.out("study", "status", file)
    assert sentence in console.out("study", "export", file)
    page = (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count("<audio") == 22 and sentence in page
    lines = list(csv.DictReader((folder / "report" / "takes.csv").open(encoding="utf-8")))
    assert len(lines) == 24
    assert all((folder / line["audio"]).is_file() for line in lines if line["audio"])
    assert sum(not line["audio"] for line in lines) == 2
    assert sentence in console.refusal("study", "set-aside", file)
    out = console.out("study", "run", file)
    assert "2 takes were made" in out and sentence not in out
    console.out("study", "export", file)
    assert (folder / "report" / "report.html").read_text(encoding="utf-8").count("<audio") == 24
