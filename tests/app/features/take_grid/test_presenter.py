"""The take grid in the real window: cells are heard at the sink, made by the real engine, compared and chosen."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from paretone_app.features.take_grid import grid
from paretone_app.features.take_grid.panel import Chosen
from paretone_app.shell.window import MainWindow
from tests.app.conftest import chosen
from tests.app.sharing import cancel_all
from tests.engine.studies.small import finished, study
from tests.sound import RATE, NullSink

pytestmark = pytest.mark.slow
SENTENCES = ["One sentence.", "Another one."]
STEPS, THRESHOLD = "steps.steps", "ditreducio.threshold"
USUAL = Chosen(THRESHOLD, STEPS, "log_mel_distance")
LOOKED_AT = ("takes",)
BEFORE = "lasting_sink"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "small.study"
    settings = [{"techniques": {"steps": {"steps": 2}}}, {"techniques": {"ditreducio": {"threshold": 0.3}}}]
    finished(folder, study(sentences=SENTENCES, grid=None, setting=settings, title="Two knobs"))
    return folder


@pytest.fixture
def window(borrowed_window: MainWindow, results: Path, qtbot: QtBot) -> Iterator[MainWindow]:
    """A window with sound in which the study is arranged."""
    window, panel = borrowed_window, borrowed_window.panels["take_grid"]
    qtbot.waitUntil(lambda: window.features["player"].player.usable)
    window.activateWindow()
    window.workspaces.go_to("take_grid")
    window.results.open(results)
    qtbot.waitUntil(lambda: panel.cells.grid is not None)
    qtbot.waitUntil(lambda: not window.results.busy)
    choose(window, USUAL, qtbot)
    panel.cells.set_cursor(0, 0)
    yield window
    window.features["player"].deck.stop()
    panel.hover_box.setChecked(True)


def choose(window: MainWindow, wanted: Chosen, qtbot: QtBot) -> None:
    """Choose as the user does above the grid, and wait until it is shown."""
    cells = window.panels["take_grid"].cells
    window.panels["take_grid"].chosen.emit(wanted)
    qtbot.waitUntil(lambda: (cells.grid.rows.name, cells.grid.columns.name) == (wanted.rows, wanted.columns))


def test_takes_of_a_study_are_arranged_around_a_reference(window: MainWindow, qtbot: QtBot) -> None:
    panel = window.panels["take_grid"]
    grid = panel.cells.grid
    assert grid.row_values == (None, 0.3) and grid.column_values == (None, 2)
    assert grid.empty == ((1, 1),) and grid.reference == (0, 0) and grid.values[0, 0] == 0.0
    assert grid.differences[0, 1] > 0 and grid.share(0, 1) < 0, "further from the baseline is worse"
    assert panel.words.text().endswith("Log-mel distance 0 nat. log: the reference.")
    panel.cells.setFocus()
    QTest.keyClick(panel.cells, Qt.Key.Key_Right)
    assert panel.cells.cursor_cell == (0, 1) and "worse" in panel.words.text()
    QTest.keyClick(panel.cells, Qt.Key.Key_R)
    qtbot.waitUntil(lambda: panel.cells.grid.reference == (0, 1))
    assert panel.cells.grid.share(0, 0) > 0
    window.state.undo_stack.undo()
    qtbot.waitUntil(lambda: panel.cells.grid.reference == (0, 0))
    QTest.keyClick(panel.cells, Qt.Key.Key_A)
    QTest.keyClick(panel.cells, Qt.Key.Key_Home)
    QTest.keyClick(panel.cells, Qt.Key.Key_B)
    compared = window.state.comparison
    assert compared.take_a.setting.technique("steps") is not None and not compared.take_b.setting.techniques
    QTest.keyClick(panel.cells, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "Log-mel distance (nat. log)\toff\t2" and lines[1].startswith("off\t0\t0.")
    assert lines[2].startswith("0.3\t") and lines[2].endswith("\t")


def test_unchanged_takes_are_not_rearranged(window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    arranged, dimensions = [], grid.dimensions
    monkeypatch.setattr(grid, "dimensions", lambda *given: arranged.append(1) or dimensions(*given))
    for workspace in ("lab", "take_grid"):
        window.workspaces.go_to(workspace)
        qtbot.wait(50)
    assert not arranged and window.panels["take_grid"].isVisible()
    window.results.takes.changed.emit()
    qtbot.waitUntil(lambda: arranged == [1])


def test_the_same_of_another_sentence_and_other_dimensions(window: MainWindow, qtbot: QtBot) -> None:
    panel = window.panels["take_grid"]
    here = panel.cells.grid.asked[0][0].text
    there = next(one for one in SENTENCES if one != here)
    chosen(panel.sentence, there)
    qtbot.waitUntil(lambda: panel.cells.grid.asked[0][0].text == there)
    chosen(panel.sentence, "Mean of all sentences")
    qtbot.waitUntil(lambda: len(panel.cells.grid.others) == 2)
    panel.cells.set_cursor(0, 1)
    assert "(mean of 2 sentences)" in panel.words.text()
    window.state.undo_stack.undo()
    qtbot.waitUntil(lambda: not panel.cells.grid.others)
    chosen(panel.rows, "text")
    qtbot.waitUntil(lambda: panel.cells.grid.rows.name == "text")
    assert set(panel.cells.grid.row_values) == set(SENTENCES) and panel.sentence.isHidden()
    assert panel.cells.grid.row_values[panel.cells.grid.reference[0]] == there != here
    chosen(panel.columns, "text")
    qtbot.waitUntil(lambda: panel.cells.grid.columns.name == "text")
    assert panel.cells.grid.rows.name == STEPS, "rows and columns change places"
    for _ in range(2):
        window.state.undo_stack.undo()
    qtbot.waitUntil(lambda: panel.cells.grid.rows.name == THRESHOLD)
    panel.more_columns.setText("3 many")
    panel.more_columns.editingFinished.emit()
    qtbot.waitUntil(lambda: "must be a number, not “many”" in panel.words.text())
    assert "must be a number" in window.notices.banner.text and panel.cells.grid is not None


def test_empty_cells_are_made_when_asked(window: MainWindow, qtbot: QtBot) -> None:
    panel, notices = window.panels["take_grid"], window.notices
    panel.cells.setFocus()
    panel.cells.set_cursor(1, 1)
    assert "No take yet: press M to make it." in panel.words.text()
    QTest.keyClick(panel.cells, Qt.Key.Key_R)
    assert "The cell is empty" in notices.banner.text
    QTest.keyClick(panel.cells, Qt.Key.Key_M)
    assert window.jobs.busy, "it is a job, which Esc cancels"
    qtbot.waitUntil(lambda: not panel.cells.grid.empty)
    made = panel.cells.grid.takes[1][1]
    assert {one.technique for one in made.setting.techniques} == {"steps", "ditreducio"}
    assert made.setting.technique("ditreducio").artefact, "what it lacked was calibrated"
    assert made.id in window.results.library
    qtbot.waitUntil(lambda: not panel.make_button.isEnabled())
    assert "Every cell has a take" in panel.make_button.toolTip()


def test_cancelling_and_what_fails_is_said(window: MainWindow, qtbot: QtBot) -> None:
    panel, notices = window.panels["take_grid"], window.notices
    choose(window, Chosen("voice", "seed", "real_time_factor", "", "5 6"), qtbot)
    qtbot.waitUntil(lambda: len(panel.cells.grid.column_values) == 3)
    qtbot.waitUntil(panel.make_button.isEnabled)
    panel.make_button.click()
    assert window.jobs.busy and len(window.state.making.waiting) == 2
    cancel_all(window.jobs)
    qtbot.waitUntil(lambda: not window.jobs.busy)
    assert not window.state.making.waiting
    panel.chosen.emit(Chosen("voice", "seed", "real_time_factor", "nobody", "5 6"))
    qtbot.waitUntil(lambda: "There is no voice “nobody”" in panel.words.text())
    assert "There is no voice “nobody”" in notices.banner.text
    choose(window, Chosen("model", "seed", "real_time_factor", "LM mini", "5 6"), qtbot)
    qtbot.waitUntil(lambda: "lm-mini" in panel.cells.grid.row_values)
    panel.cells.setFocus()
    panel.cells.set_cursor(panel.cells.grid.row_values.index("lm-mini"), 0)
    QTest.keyClick(panel.cells, Qt.Key.Key_M)
    assert "It is of LM mini. Load that model first" in notices.banner.text and not window.jobs.busy


def test_pointing_at_cells_plays_them_at_one_place(window: MainWindow, lasting_sink: NullSink, qtbot: QtBot) -> None:
    panel, presenter = window.panels["take_grid"], window.features["player"]
    deck, player, cells = presenter.deck, presenter.player, panel.cells
    takes = cells.grid.takes

    def point_at(*cell: int) -> None:
        QTest.mouseMove(cells, cells.cell_rectangle(*cell).center().toPoint())

    with lasting_sink.recording() as recording:
        point_at(0, 0)
        qtbot.waitUntil(lambda: player.playing)
        assert deck.sound.key == takes[0][0].id
        point_at(0, 1)
        qtbot.waitUntil(lambda: deck.sound.key == takes[0][1].id)
        assert deck.loop == (0.0, max(one.seconds for one in deck.row)), "round and round"
        qtbot.waitUntil(lambda: cells.playing == takes[0][1].id)
        qtbot.waitUntil(lambda: len(recording.samples) > RATE)
        point_at(1, 1)
        qtbot.waitUntil(lambda: not player.busy)
    assert abs(recording.samples).max() > 0.01, "the sink heard it"
    panel.hover_box.setChecked(False)
    point_at(1, 0)
    qtbot.wait(300)
    assert not player.busy, "when asked, pointing plays nothing"
    cells.setFocus()
    cells.set_cursor(0, 0)
    QTest.keyClick(cells, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: player.playing)
    QTest.keyClick(cells, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: deck.sound.key == takes[1][0].id)
    QTest.keyClick(cells, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not player.busy)


def test_a_take_that_is_gone_is_said_in_a_sentence(window: MainWindow, results: Path, qtbot: QtBot) -> None:
    panel, notices = window.panels["take_grid"], window.notices
    window.features["take_grid"].hearing.sounds.clear()
    aside = (results / "audio").rename(results / "aside")
    try:
        panel.cells.setFocus()
        panel.cells.set_cursor(0, 1)
        QTest.keyClick(panel.cells, Qt.Key.Key_Space)
        qtbot.waitUntil(lambda: bool(notices.banner.text))
    finally:
        aside.rename(results / "audio")
    assert "Traceback" not in notices.banner.text and not window.features["player"].player.busy


def test_the_grid_is_around_the_point_of_trade_off_and_is_remembered(window: MainWindow, qtbot: QtBot) -> None:
    panel, point = window.panels["take_grid"], window.panels["tradeoff"]
    assert json.loads(window.settings.value("take grid/shown")) == asdict(USUAL)
    window.workspaces.go_to("tradeoff")
    qtbot.waitUntil(lambda: bool(point.scene.points))
    key = next(one.key for one in point.scene.points if one.techniques == ("steps",))
    point.plot.go_to(point.scene.index[key])
    window.action["grid_point"].trigger()
    qtbot.waitUntil(lambda: panel.isVisible() and panel.cells.grid.reference == (0, 1))
    assert panel.cells.grid.takes[0][1].setting.technique("steps") is not None
