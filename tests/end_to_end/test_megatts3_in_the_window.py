"""MegaTTS 3 in the real window: a small model of random weights in the layout of the bundled one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.session.engine_thread import EngineThread
from paretone.wording import percent
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.window import MainWindow
from tests.app.conftest import close
from tests.engine.models.minis.small_megatts3_mini import LAYERS, write_bundled

PATIENCE_MILLISECONDS = 120_000
"""When the test gives up; never what it measures."""
CONTROL = Qt.KeyboardModifier.ControlModifier
MODEL = "megatts3-mini"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_three_branches_from_baseline_to_attention(
    qapp: QApplication, theme: Theme, qtbot: QtBot, tmp_path: Path
) -> None:
    qapp.setQuitOnLastWindowClosed(False)
    write_bundled(tmp_path / "models" / MODEL)
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(theme, settings, tmp_path / "data", EngineThread)
    strategy = window.features["strategy"].state
    window.theme.apply(Scheme.LIGHT)
    window.resize(1440, 900)
    window.show()
    window.activateWindow()
    state = window.state
    qtbot.waitUntil(lambda: window.is_built and state.selection.ready, timeout=PATIENCE_MILLISECONDS)

    def wait_for_job(press: Callable[[], object]) -> None:
        qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
        with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
            press()
        assert blocker.args[1].value == "finished", blocker.args[2]

    wait_for_job(lambda: state.loading.load_model(MODEL, str(tmp_path / "models" / MODEL)))
    assert (state.selection.info.id, state.selection.info.branches, state.selection.info.layers) == (MODEL, 3, LAYERS)
    setup = window.panels["setup"]
    assert {"intelligibility", "similarity", "overshoot"} <= {knob.name for knob in setup.sampler.knobs}
    steps = setup.sampler.editor("steps")
    steps.setFocus()
    steps.selectAll()
    qtbot.keyClicks(steps, "4")
    qtbot.keyClick(steps, Qt.Key.Key_Return)
    state.selection.set_knob("ditreducio", "threshold", 0.5)
    state.selection.set_text("Rice is often served in round bowls.")

    wait_for_job(lambda: qtbot.keyClick(window, Qt.Key.Key_B, CONTROL))
    wait_for_job(lambda: qtbot.mouseClick(window.features["guide"].guide.button(1), Qt.MouseButton.LeftButton))
    assert (strategy.table.layers, strategy.table.steps) == (LAYERS, 4)
    assert strategy.table.skipped_share > 0
    assert state.cost.operations.branches == 3
    predicted = state.cost.ops_ratio
    assert f"{percent(predicted, 1)}" in setup.cost.text()
    wait_for_job(lambda: qtbot.keyClick(window, Qt.Key.Key_Return, CONTROL))
    baseline, accelerated = state.comparison.take_a, state.comparison.take_b
    assert accelerated.measurements.ops_ratio == pytest.approx(predicted)
    assert accelerated.samples.shape == baseline.samples.shape
    assert not np.array_equal(accelerated.samples, baseline.samples)
    assert accelerated.log_mel_distance > 0
    assert state.comparison.warning() == ""

    wait_for_job(lambda: window.features["attention"].capture(1, 2))
    attention = window.panels["attention"]
    shown = [plot for plot in attention.plots if not plot.isHidden()]
    assert [title.text().partition("<br>")[0] for title in attention.titles[: len(shown)]] == [
        "<b>speaker and text</b>",
        "<b>text only</b>",
        "<b>unconditional</b>",
    ]

    # A recording that it cannot use is answered with a sentence, and the window goes on.
    state.selection.set_text("Wie geht es dir heute, und was ist das für ein Buch?")
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
        state.synthesis.synthesise_baseline()
    assert "looks like German" in blocker.args[2]

    close(window, qtbot)
