"""Studies whose file, database or disk is at fault: a sentence for each, and the window goes on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from paretone.studies.store import DATABASE
from paretone_app.features.studies.panel import StudiesPanel
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.damage import spoil_database
from tests.app.features.studies.studying import created, ended, opened, run_once, shown, write
from tests.disk import tiny_disk  # noqa: F401

ENOUGH = 40
"""Sentences whose takes do not fit onto the tiny disk."""


def test_files_that_are_no_studies_are_told_by_a_sentence(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    many = (
        f"first_block.threshold = {[n / 2000 for n in range(1, 2001)]}\n"
        f"ditreducio.threshold = {[n / 5000 for n in range(1, 5001)]}"
    )
    long = "this would be 20,000,000 takes (10,000,000 settings × 2 utterances); at a second each they take 231 days"
    for more, grid, sentence in (
        ("", "warp_drive.speed = [9]", "There is no technique named 'warp_drive'"),
        ('voices = ["nobody"]', "", "There is no voice named 'nobody'"),
        ('voices = [{ audio = "gone.wav", transcript = "x" }]', "", "there is no recording"),
        ("", many, long),
    ):
        window.features["studies"].open(write(tmp_path, more=more, grid=grid))
        qtbot.waitUntil(lambda said=sentence: said in window.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
        assert window.features["studies"].summary is None
        assert not window.results.studies
    opened(window, write(tmp_path, name="good"), qtbot)
    assert panel.run_button.isEnabled()


def test_a_file_that_was_spoilt_meanwhile_fails_with_its_sentence(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    file = write(tmp_path)
    opened(window, file, qtbot)
    file.write_text("[grid", encoding="utf-8")
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FAILED
    assert "is not valid TOML" in sentence
    assert "is not valid TOML" in panel.state
    assert not panel.run_button.isEnabled()
    write(tmp_path)
    window.features["studies"].opened.choose(tmp_path / "small.study")
    qtbot.waitUntil(panel.run_button.isEnabled, timeout=PATIENCE_MILLISECONDS)


@pytest.mark.parametrize("readable", [True, False])
def test_a_damaged_study_is_read_and_can_be_set_aside(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot, readable: bool
) -> None:
    file = run_once(tmp_path)
    folder = file.with_suffix(".study")
    with sqlite3.connect(folder / DATABASE) as direct:
        direct.execute("CREATE INDEX takes_by_text ON takes (text)")
    direct.close()
    spoil_database(folder / DATABASE, "takes_by_text" if readable else "")
    opened(window, file, qtbot)
    assert "damaged" in panel.state
    assert "damaged" in window.notices.banner.text
    assert not panel.run_button.isEnabled()
    if readable:
        # What was made is shown with what the file asks for.
        assert [row[2] for row in panel.table.texts()] == ["1", "1", "1", "0/2", "0/2", "0/2"]
    assert panel.aside_button.isVisibleTo(panel)
    panel.aside_button.click()
    shown(window, qtbot)
    (backup,) = folder.glob("damaged-*")
    assert (backup / DATABASE).exists()
    assert list((backup / "audio").glob("*.wav"))
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    assert window.features["studies"].summary.made == 6


def test_a_newer_study_is_left_alone(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    file = run_once(tmp_path)
    with sqlite3.connect(file.with_suffix(".study") / DATABASE) as direct:
        direct.execute("PRAGMA user_version = 99")
    direct.close()
    opened(window, file, qtbot)
    assert "written by a newer Paretone" in panel.state
    assert not panel.run_button.isEnabled()
    assert not panel.aside_button.isVisibleTo(panel)


def test_a_locked_study_fails_with_a_sentence(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = run_once(tmp_path)
    opened(window, file, qtbot)
    other = sqlite3.connect(file.with_suffix(".study") / DATABASE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with monkeypatch.context() as impatient:
        impatient.setattr("paretone.database._PATIENCE_SECONDS", 0.1)
        outcome, sentence = ended(window, panel.run_button.click, qtbot)
    other.close()
    assert outcome is Outcome.FAILED
    assert "another program is writing to it" in sentence
    assert "another program is writing to it" in panel.state
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence


def test_a_full_disk_stops_the_study_and_nothing_else(
    panel: StudiesPanel,
    window: MainWindow,
    tiny_disk: Path,  # noqa: F811
    qtbot: QtBot,
) -> None:
    opened(window, write(tiny_disk, sentences=ENOUGH), qtbot)
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FAILED
    assert "the disk is full; free some space" in sentence
    assert "the disk is full" in panel.state
    assert window.features["studies"].summary.made == len(created(tiny_disk / "small.study")) > 0
    window.state.synthesis.synthesise_baseline()
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    assert window.state.comparison.take_a is not None
