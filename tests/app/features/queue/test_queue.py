"""The queue in the real window, with the bundled models: order, grouping, pause, cancelling, and a restart."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.models import load_model
from paretone.serving.records import Order, Target
from paretone.session.commands import MeasureServer
from paretone.session.events import AudioReady, ModelLoaded
from paretone_app.features.queue.presenter import GO_ON, QueuePresenter
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from paretone_app.state.playing import Origin
from tests.app.acting import press
from tests.app.conftest import SMALL, MakeWindow, close, ready
from tests.app.holding import Posts

PARTS = f"{SMALL} strategy queue"


def ask(window: MainWindow, *texts: str) -> None:
    for text in texts:
        window.state.selection.set_text(text)
        window.action.baseline.trigger()


def texts(window: MainWindow) -> list[str]:
    jobs = window.jobs
    return [getattr(one.command, "text", one.kind.name) for one in (*jobs.all, *jobs.left)]


def made(window: MainWindow) -> list[str]:
    return [one.text for one in reversed(window.results.takes.all)]


def test_order_groups_pause_and_cancelling(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = ready(make_window(load_model, parts=PARTS), qtbot)
    jobs, chosen, loaded = window.jobs, window.state.selection, []
    window.bridge.happened.connect(lambda event: loaded.append(event) if isinstance(event, ModelLoaded) else None)
    heard, playing = set(), window.state.playing
    playing.changed.connect(lambda: playing.now.origin is Origin.STREAM and heard.add(playing.now.detail))
    queue, takes = window.features.find(QueuePresenter), window.features.find(TakesPresenter)
    chosen.set_option("steps", 2)
    pause = queue.panel.table.actions()[3]
    pause.trigger()
    ask(window, "One.", "Two.", "Three.")
    window.action.model_wanted.emit("lm-mini")
    assert chosen.model_id == "lm-mini" and not chosen.ready and not window.notices.banner.cards, "nothing is asked"
    ask(window, "In another model.")
    window.action.model_wanted.emit("f5-mini")
    assert chosen.ready, "a model that was loaded before is at hand at once"
    ask(window, "Four.")
    assert texts(window) == ["One.", "Two.", "Three.", "Four.", "In another model."], "models are loaded once"
    assert "5 jobs wait, paused" in window.header.queue.accessibleName() and not jobs.running
    rows = takes.takes.table.model()
    settings = [rows.index(row, column).data() for row in range(5) for column in range(rows.columnCount())]
    assert rows.rowCount() == 5 and any("Waits: " in one for one in settings), "a take is a row at once"
    window.header.queue.click()
    table = queue.panel.table
    table.setCurrentCell(2, 0)
    press(table, Qt.Key.Key_Up, Qt.Key.Key_Up, modifier=Qt.KeyboardModifier.AltModifier)
    assert texts(window)[:3] == ["Three.", "One.", "Two."] and table.currentRow() == 0, "the row stays chosen"
    window.action.undo.trigger()
    assert texts(window)[:3] == ["One.", "Three.", "Two."]
    window.action.redo.trigger()
    table.setCurrentCell(2, 0)
    press(table, Qt.Key.Key_Delete)
    assert queue.panel.chosen is not None and "Four." in queue.panel.chosen.title, "the next one is chosen"
    window.action.undo.trigger()
    assert texts(window).count("Two.") == 1, "a cancelled job comes back"
    window.action.redo.trigger()
    assert "Two." not in texts(window)
    queue.panel.moved.emit(jobs.waiting[2].number, 0)
    wanted = ["Four.", "Three.", "One.", "In another model."]
    assert texts(window) == wanted
    pause.trigger()
    qtbot.waitUntil(lambda: len(loaded) == 2 and not jobs.busy)
    assert made(window) == wanted and rows.rowCount() == 4
    assert [one.info.id for one in loaded] == ["lm-mini", "f5-mini"], "the selected one is there again at the end"
    assert heard == {"In another model."}, "of those that waited, the last plays by itself"
    chosen.set_text("First line.\n\nSecond line.\n")
    window.panels["setup"].per_line.setChecked(True)
    window.action.baseline.trigger()
    assert texts(window) == ["First line.", "Second line."]
    window.action.cancel.trigger()
    assert len(jobs.all) == 2, "only the one under way is cancelled"
    qtbot.waitUntil(lambda: not jobs.busy)
    assert made(window)[-1] == "Second line." and "Second line." in heard


def test_a_take_waits_for_its_calibration(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = ready(make_window(parts=PARTS), qtbot)
    jobs, ended = window.jobs, []
    jobs.ended.connect(lambda job, outcome, sentence: ended.append((job.kind, outcome, sentence)))
    window.state.editing.switch("ditreducio", True)
    assert "calibrate" in window.action.accelerated.reason
    jobs.stop(True)
    window.action["calibrate"].trigger()
    window.action.accelerated.trigger()
    window.state.selection.set_option("guidance", 1.0)
    jobs.stop(False)
    qtbot.waitUntil(lambda: not jobs.busy)
    assert ended == [(Kind.CALIBRATE, Outcome.FINISHED, ""), (Kind.ACCELERATED, Outcome.FINISHED, "")]
    (take,) = window.results.takes.all
    assert take.setting.technique("ditreducio").artefact and take.setting.options["guidance"] != 1.0, "as asked for"
    jobs.stop(True)
    window.action["calibrate"].trigger()
    window.action.accelerated.trigger()
    jobs.cancel(jobs.waiting[0])
    assert ended[-1][:2] == (Kind.ACCELERATED, Outcome.FAILED) and "Calibrating: cancelled" in ended[-1][2]
    assert not jobs.busy and "needs what was not made" in window.notices.banner.text
    jobs.stop(False)


def test_what_streams_stays_drawn(make_window: MakeWindow, posts: Posts, qtbot: QtBot) -> None:
    window = ready(make_window(parts=PARTS), qtbot)
    posts.hold_at(AudioReady)
    ask(window, "One.", "Two.")
    canvas = window.panels["listen"].canvas
    qtbot.waitUntil(lambda: canvas.lanes[0].key == "coming")
    window.jobs.cancel(window.jobs.waiting[0])
    assert canvas.lanes[0].key == "coming", "another was cancelled"


KILLED = """
import sys
from PySide6.QtWidgets import QApplication
from paretone_app.__main__ import make_window
application = QApplication([])
window = make_window(application, sys.argv[1] + "/data", sys.argv[1] + "/window.ini")
def go():
    for text, steps in (("What runs. " * 9, 64), ("Second.", 2), ("Third.", 2)):
        window.state.selection.set_option("steps", steps)
        window.state.selection.set_text(text)
        window.action.baseline.trigger()
window.jobs.ended.connect(lambda job: go() if job.number == 1 else None)
window.bridge.progress.connect(lambda event: print("under way", flush=True))
window.show()
application.exec()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_the_queue_survives_kill_9(make_window: MakeWindow, tmp_path: Path, qtbot: QtBot) -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and "under way" in process.stdout.readline()
        process.kill()
    window = ready(make_window(load_model, parts=PARTS), qtbot)
    assert "3 jobs of the last session wait." in window.notices.banner.text and not window.results.takes.all
    assert texts(window) == ["What runs. " * 9, "Second.", "Third."] and not window.jobs.busy, "it waits for the user"
    assert window.state.selection.text == "Third."
    assert window.features.find(TakesPresenter).takes.table.model().rowCount() == 3
    window.state.selection.set_option("steps", 2)
    ask(window, "New.")
    assert window.jobs.running[0].command.text == "New.", "what is asked for now does not wait for it"
    window.jobs.replace_left(window.jobs.left[0].__eq__)
    window.notices.banner.cards[0].answers[0].click()
    assert not window.jobs.left
    qtbot.waitUntil(lambda: not window.jobs.busy)
    assert made(window) == ["New.", "Second.", "Third."] and GO_ON not in window.notices.banner.text


def test_what_cannot_be_restored_is_said(make_window: MakeWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window = ready(make_window(parts=PARTS + " attention"), qtbot)
    window.jobs.stop(True)
    window.features["attention"].capture(0, 0)
    order = Order(Target("http://127.0.0.1:1"), ("Milk.",))
    window.jobs.start(Kind.SERVER, lambda number: MeasureServer(number, order))
    ask(window, "Kept.")
    close(window, qtbot)
    again = ready(make_window(parts=PARTS), qtbot)
    assert texts(again) == ["Kept."]
    said = "Capturing attention: its result is shown", "Measuring a server: its finished loads are kept"
    assert all(any(what in one.sentence for one in again.notices.history) for what in said)
    close(again, qtbot)
    file = tmp_path / "data" / "queue.bin"
    kept = file.read_bytes()
    file.write_bytes(kept[:-9])
    third = ready(make_window(parts=PARTS), qtbot)
    assert "cannot be read" in third.notices.banner.text and not third.jobs.left
    assert (tmp_path / "data" / "queue.unread.bin").read_bytes() == kept[:-9], "nothing is lost"
