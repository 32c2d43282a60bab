"""The main job as a user does it, on the bundled model, with real clicks and key presses in the real window.

In a process of its own, as a window of an X server with a sound server, which leaves a picture in
``$PARETONE_ARTEFACTS`` where that names a folder. Without those, or thoroughly, on Qt's offscreen platform.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from paretone.setting.profile import Profile
from paretone_app.features.export import ProfileDialog
from paretone_app.shell.window import MainWindow
from tests.app.conftest import typed
from tests.end_to_end.conftest import PATIENCE_MILLISECONDS, Outcome
from tests.screen import done_on_a_screen
from tests.sound import NullSink
from tests.voices import SECOND
from tests.workload import workload

pytestmark = pytest.mark.usefixtures("short_prompts")

TEXT = workload("The salt breeze came across from the sea.", "The salt breeze.")
STEPS = workload(8, 3)
PICTURE = "PARETONE_PICTURE"
"""Names the file for the window's picture, in the process that has a screen and sound."""
CONTROL = Qt.KeyboardModifier.ControlModifier


@done_on_a_screen
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pick_calibrate_synthesise_switch_export(
    window: MainWindow, outcome_of: Outcome, qtbot: QtBot, tmp_path: Path
) -> None:
    state, setup, strategy = window.state, window.panels["setup"], window.features["strategy"].state
    deck = window.features["player"].deck
    assert state.selection.info.id == "f5-mini"

    def wait_for_job(press: Callable[[], object]) -> None:
        assert outcome_of(press)[0] == "finished"

    # Pick: a voice from the list, a sentence by typing, some steps.
    setup.voice_choice.voice.setFocus()
    qtbot.keyClick(setup.voice_choice.voice, Qt.Key.Key_Down)
    assert state.selection.voice.id == SECOND
    setup.text.setFocus()
    setup.text.selectAll()
    qtbot.keyClicks(setup.text, TEXT)
    steps = window.panels["setup"].sampler.editor("steps")
    typed(steps, str(STEPS), qtbot)
    assert window.state.selection.options["steps"] == STEPS

    # Baseline by its key, calibration by a click, accelerated by its key.
    wait_for_job(lambda: qtbot.keyClick(window, Qt.Key.Key_B, CONTROL))
    assert window.state.comparison.take_a.text == TEXT
    wait_for_job(lambda: qtbot.mouseClick(window.features["guide"].guide.buttons[1], Qt.MouseButton.LeftButton))
    assert (strategy.table.layers, strategy.table.steps) == (state.selection.info.layers, STEPS)
    assert window.panels["strategy"].table == strategy.table
    wait_for_job(lambda: qtbot.keyClick(window, Qt.Key.Key_Return, CONTROL))
    baseline, accelerated = window.state.comparison.take_a, window.state.comparison.take_b
    assert accelerated.setting.baseline == baseline.setting
    assert accelerated.measurements.ops_ratio == pytest.approx(window.state.cost.ops_ratio)
    assert accelerated.measurements.ops_ratio < 1
    assert accelerated.log_mel_distance > 0
    assert window.state.comparison.warning() == ""
    assert len(window.results.library) == 2

    # Look at one cell's attention.
    window.workspaces.go_to("attention")
    grid = window.panels["attention"].grid
    qtbot.waitUntil(lambda: grid.isVisible() and not grid.visibleRegion().isEmpty())
    cell = grid.cell_rectangle(1, 2).center()
    wait_for_job(lambda: qtbot.mouseClick(grid, Qt.MouseButton.LeftButton, pos=cell))

    # Switch.
    buttons = window.panels["player"].findChildren(QPushButton)
    switch = next(one for one in buttons if one.accessibleName() == "Switch between A and B")
    qtbot.waitUntil(lambda: switch.isEnabled() and len(deck.loaded) == 2, timeout=PATIENCE_MILLISECONDS)
    window.workspaces.go_to("listen")
    heard = deck.heard
    with qtbot.waitSignal(deck.changed):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_X)
    assert deck.heard != heard

    # Where there is sound: play, over and over, and switch in the middle of a word.
    picture = os.environ.get(PICTURE, "")
    if picture:
        player = window.features["player"].player
        assert player.usable, player.problem
        assert QGuiApplication.platformName() == "xcb"
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_L)
        qtbot.keyClick(window, Qt.Key.Key_Space, CONTROL)
        qtbot.waitUntil(lambda: player.playing and player.position > 0.3, timeout=PATIENCE_MILLISECONDS)
        heard, choice = deck.heard, player.choice
        qtbot.keyClick(window, Qt.Key.Key_Space, CONTROL)
        assert deck.heard != heard
        qtbot.waitUntil(lambda: player.playing and player.choice != choice, timeout=PATIENCE_MILLISECONDS)
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_L)
        qtbot.waitUntil(lambda: not player.playing, timeout=PATIENCE_MILLISECONDS)
        assert player.problem == ""

    # Export.
    path = tmp_path / "profile.json"
    qtbot.keyClick(window, Qt.Key.Key_E, CONTROL)
    dialog = window.findChild(ProfileDialog)
    dialog.path.selectAll()
    qtbot.keyClicks(dialog.path, str(path))
    with qtbot.waitSignal(window.features["export"].written):
        qtbot.keyClick(dialog.path, Qt.Key.Key_Return)
    profile = Profile.load(path)
    assert profile.setting == accelerated.setting
    assert profile.artefact("table") == strategy.table
    assert profile.evidence.metrics["ops_ratio"] == accelerated.measurements.ops_ratio

    window.notices.say("")
    window.workspaces.go_to("strategy")
    window.workspaces.go_to("listen")
    qtbot.wait(200)
    window.grab().save(picture or str(tmp_path / "window.png"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_main_job_in_a_window_with_sound(display: str, null_sink: NullSink, tmp_path: Path) -> None:
    """A process has one platform for its whole life, so this one asks another to do the job."""
    picture = Path(os.environ.get("PARETONE_ARTEFACTS") or tmp_path) / "window.png"
    environment = {**os.environ, "QT_QPA_PLATFORM": "xcb", "DISPLAY": display, PICTURE: str(picture)}
    job = f"{__file__}::{test_pick_calibrate_synthesise_switch_export.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "job"), job]
    with null_sink.recording() as recording:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        assert "1 passed" in done.stdout
        assert abs(recording.samples).max() > 0.01, "nothing was heard"
    image = QImage(str(picture))
    assert (image.width(), image.height()) == (1440, 900)
    colours = {image.pixel(x, y) for x in range(0, 1440, 7) for y in range(0, 900, 7)}
    assert len(colours) > 100, "the picture shows plots and tables"
