"""The lab's presenter in the real window, where nothing is heard: what can be compared, exported and looked at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.listening import trials
from paretone.session.commands import RunStudy
from paretone_app.features.lab.panel import COMPARED
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.features.lab.testing import (
    FAST,
    PLAIN,
    RATE,
    TAKES,
    at_the_lab,
    compare,
    folder_of,
    take,
    tick_all,
)
from tests.engine.listening.test_results import abx_session
from tests.sound import NullSink, null_sink  # noqa: F401

SMALL_STUDY = Path(__file__).parents[3] / "first_edition" / "small.study"


@pytest.fixture
def quiet(borrowed_window: MainWindow, qtbot: QtBot) -> Iterator[MainWindow]:
    """A window that may have no sound. Its library has three sentences in two settings."""
    with at_the_lab(borrowed_window, qtbot):
        yield borrowed_window


def test_settings_and_sentences_come_from_the_library(quiet: MainWindow) -> None:
    setup = quiet.panels["lab"].setup
    tick_all(quiet)
    assert [setup.ticks.item(row).text() for row in range(setup.ticks.count())] == ["baseline", "DiTReducio δ = 0.2"]
    assert "3 sentences in common" in setup.plan.text()
    quiet.results.takes.add(take(50, PLAIN, "New."))
    quiet.results.takes.add(take(51, FAST, "New."))
    assert "4 sentences in common" in setup.plan.text()
    quiet.results.takes.delete([f"{51:032x}"])
    assert "3 sentences in common" in setup.plan.text()


def test_takes_of_an_open_study_are_listed_too(quiet: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    study = tmp_path / "small.study"
    shutil.copytree(SMALL_STUDY, study)
    setup = quiet.panels["lab"].setup
    before = setup.ticks.count()
    quiet.workspaces["tradeoff"].hide()
    quiet.results.open(study)
    qtbot.waitUntil(lambda: setup.ticks.count() > before, timeout=PATIENCE_MILLISECONDS)
    (read,) = quiet.results.studies.values()
    load = quiet.features["lab"]._loader()
    for one in (next(iter(read.takes)), TAKES[0].id):
        samples, rate = load(one)
        assert rate == RATE and len(samples) > 1000, "those of the study, and the library's as well"


def test_without_sound_no_test_begins_but_one_can_be_exported(quiet: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    lab = quiet.panels["lab"]
    if quiet.features["player"].player.usable:
        pytest.skip("this machine has sound")
    tick_all(quiet)
    assert not lab.setup.begin_button.isEnabled()
    qtbot.waitUntil(lambda: "works" in lab.setup.remarks.text(), timeout=PATIENCE_MILLISECONDS)
    assert lab.setup.export_button.isEnabled()
    folder = tmp_path / "exported"
    quiet.features["lab"].write_test(folder)
    qtbot.waitUntil(lambda: "Wrote" in quiet.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
    (made,) = folder.iterdir()
    config = yaml.safe_load((made / f"{made.name}.yaml").read_text())
    _, *practice, pages, _ = config["pages"]
    assert [one["id"] for one in practice] == ["practice_1", "practice_2"]
    pages = pages[1:]
    assert len(pages) == 16
    for page in pages:
        for path in (page["reference"], *page["stimuli"].values()):
            assert (made / Path(path).name).exists()
    assert len(list(made.glob("*.wav"))) == 6 + 1, "and the noise that the volume is set by"


def test_a_study_on_a_cluster_is_to_be_paused_first(quiet: MainWindow) -> None:
    quiet.jobs.hold()  # So that it only waits.
    compare(quiet)
    quiet.jobs.start(Kind.STUDY, lambda job: RunStudy(job, "none.toml", "", ray="local"))
    assert "A study is running on a cluster" in quiet.panels["lab"].setup.remarks.text()
    with pytest.raises(PlainError, match="pause the study first"):
        quiet.features["lab"].begin()
    quiet.jobs.cancel_all()
    quiet.jobs.release()


def test_a_choice_that_makes_no_test_says_why(quiet: MainWindow) -> None:
    setup = quiet.panels["lab"].setup
    assert "Choose two takes as A and B first." in setup.remarks.text()
    quiet.state.comparison.set_a(TAKES[0])
    quiet.state.comparison.set_b(replace(TAKES[2], setting=replace(PLAIN, seed=8)))
    assert "A and B have the same setting" in setup.remarks.text()
    with pytest.raises(PlainError, match="same setting"):
        quiet.features["lab"].begin()
    with pytest.raises(PlainError, match="same setting"):
        quiet.features["lab"].write_test(Path("nowhere"))
    setup.method.setCurrentIndex(1)
    compare(quiet)
    assert not setup.export_button.isEnabled()
    assert "no graded comparison" in setup.export_button.toolTip()


def test_what_else_differs_between_a_and_b_is_said(quiet: MainWindow) -> None:
    quiet.state.comparison.set_a(TAKES[0])
    quiet.state.comparison.set_b(TAKES[3])
    assert quiet.panels["lab"].setup.choice.source == COMPARED
    assert "also differ in text" in quiet.panels["lab"].setup.remarks.text()


def test_damaged_results_are_reported_with_the_others(quiet: MainWindow) -> None:
    for one in abx_session("s", 12):
        path = trials.append(one, folder_of(quiet) / trials.FOLDER)
    path.write_text(path.read_text() + "nonsense\n")
    quiet.panels["lab"].setup.results_button.click()
    text = quiet.panels["lab"].results.page.toPlainText()
    assert "12 of 16 right" in text
    assert f"Damaged lines in {path}: 1." in text
