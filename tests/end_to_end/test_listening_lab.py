"""A whole ABX test by keyboard in the real window, with a real sound server: what sounds is what was chosen.

In a process of its own, as a window of an X server; without one, or thoroughly, on Qt's offscreen platform.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.audio.resampling import resample
from paretone.listening import results, trials
from paretone.session.engine_thread import EngineThread
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Take
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.window import MainWindow
from tests.app.conftest import close
from tests.engine import small_speech
from tests.screen import display, done_on_a_screen  # noqa: F401
from tests.sound import RATE, NullSink, null_sink  # noqa: F401
from tests.workload import workload

PATIENCE_MILLISECONDS = 120_000
"""When the test gives up; never what it measures."""
CONTROL = Qt.KeyboardModifier.ControlModifier
TRIALS = 5
SECONDS = workload(0.5, 0.25)
"""Length of a take."""
OWN_RATE = 24000
PLAIN = Setting("f5-mini", Values({"steps": 8}), seed=7)
REDUCED = PLAIN.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.2}), "a" * 16))


def _take(name: str, setting: Setting, pitch: float, level: float) -> Take:
    """A short sound that begins and ends loudly and is never silent in between."""
    time_axis = np.arange(round(SECONDS * OWN_RATE)) / OWN_RATE
    voiced = sum(np.cos(2 * np.pi * pitch * k * time_axis + k * k) / k for k in range(1, 6))
    breath = np.random.default_rng(round(pitch)).standard_normal(len(time_axis))
    samples = (level * (voiced + 0.3 * breath)).astype(np.float32)
    return Take(name * 32, "2026-01-01T00:00:00+00:00", "A sentence.", "anna", setting, OWN_RATE, samples, label=name)


def _pieces(recorded: np.ndarray) -> list[np.ndarray]:
    """Stretches of sound between silences."""
    sounding = np.flatnonzero(recorded)
    if not len(sounding):
        return []
    breaks = np.flatnonzero(np.diff(sounding) > RATE // 50)
    edges = [0, *(breaks + 1), len(sounding)]
    return [recorded[sounding[a] : sounding[b - 1] + 1] for a, b in itertools.pairwise(edges)]


def _is_whole(recorded: np.ndarray) -> bool:
    """Whether all sounds of all trials are there, and silence after the last one."""
    return len(_pieces(recorded)) == 3 * TRIALS and not recorded[-RATE // 20 :].any()


@done_on_a_screen
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_abx_by_keyboard(qapp: QApplication, theme: Theme, qtbot: QtBot, tmp_path: Path, null_sink: NullSink) -> None:  # noqa: F811
    qapp.setQuitOnLastWindowClosed(False)
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(theme, settings, tmp_path / "data", lambda post: EngineThread(post, small_speech.load))
    window.theme.apply(Scheme.LIGHT)
    window.resize(1440, 900)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(lambda: window.is_built and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    qtbot.waitUntil(window.isActiveWindow, timeout=PATIENCE_MILLISECONDS)
    player = window.features["player"].player
    qtbot.waitUntil(lambda: player.usable, timeout=PATIENCE_MILLISECONDS)
    assert player.rate == RATE
    takes = [_take("a", PLAIN, 220, 0.2), _take("b", REDUCED, 310, 0.05)]
    window.state.comparison.set_a(takes[0])
    window.state.comparison.set_b(takes[1])

    def press(key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        qtbot.keyClick(QApplication.focusWidget() or window, key, modifier)

    def set_up() -> None:
        press(Qt.Key.Key_L, CONTROL)
        setup = window.panels["lab"].setup
        assert QApplication.focusWidget() is setup.method
        while QApplication.focusWidget() is not setup.length:
            press(Qt.Key.Key_Tab)
        setup.length.selectAll()
        qtbot.keyClicks(setup.length, str(TRIALS))
        while QApplication.focusWidget() is not setup.practice:
            press(Qt.Key.Key_Tab)
        setup.practice.selectAll()
        qtbot.keyClicks(setup.practice, "0")
        press(Qt.Key.Key_Tab)
        assert "5 of 5 must be right" in setup.remarks.text()
        assert setup.begin_button.isEnabled(), setup.begin_button.toolTip()
        while QApplication.focusWidget() is not setup.begin_button:
            press(Qt.Key.Key_Tab)
        press(Qt.Key.Key_Space)
        lab = window.panels["lab"]
        qtbot.waitUntil(lambda: lab.volume is not None, timeout=PATIENCE_MILLISECONDS)
        qtbot.waitUntil(lambda: QApplication.focusWidget() is lab.volume, timeout=PATIENCE_MILLISECONDS)
        press(Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: lab.trial is not None, timeout=PATIENCE_MILLISECONDS)

    def run() -> tuple[np.ndarray, list[trials.TrialRecord]]:
        """One session: its sound and its records. X is always said to be A."""
        set_up()
        page = window.panels["lab"].trial
        session = page.session
        with null_sink.recording() as recording:
            time.sleep(0.3)
            while not session.finished:
                assert window.jobs.held
                for key in (Qt.Key.Key_A, Qt.Key.Key_B, Qt.Key.Key_X):
                    press(key)
                    qtbot.waitUntil(lambda: player.mixer.settled and not player.playing, timeout=PATIENCE_MILLISECONDS)
                    qtbot.wait(round(1000 * player.output_latency) + 60)
                shown = page.title.text() + page.hint.text() + page.facts.text()
                assert "right" not in shown.replace("bright", "")
                press(Qt.Key.Key_1)
            # The last sound may still be on its way to the recorder.
            qtbot.waitUntil(
                lambda: any(one.void for one in session.records) or _is_whole(recording.samples),
                timeout=PATIENCE_MILLISECONDS,
            )
        return recording.samples, session.records

    for _ in range(5):
        recorded, records = run()
        if not any(one.void for one in records):
            break
        # Another test: on a starved machine some are set aside, and more sound is kept ready for the next one.
        shutil.rmtree(tmp_path / "data" / "listening")
        assert QApplication.focusWidget() is window.panels["lab"].results.back_button
        press(Qt.Key.Key_Space)
        player.latency *= 2
        playback = window.features["player"].playback
        playback.connect_device()
        qtbot.waitUntil(lambda playback=playback: not playback.probing and player.usable, timeout=PATIENCE_MILLISECONDS)
    assert not any(one.void for one in records)
    assert len(records) == TRIALS
    assert not window.jobs.held

    # What was heard is A, B and X as they were drawn, each as loud as the other, sample by sample.
    heard = [
        resample(take.samples, OWN_RATE, RATE) * np.float32(10 ** (record.gain / 20))
        for take, record in zip(takes, records[0].conditions, strict=True)
    ]
    pieces = _pieces(recorded)
    assert len(pieces) == 3 * TRIALS
    for number, record in enumerate(records):
        for piece, stimulus in zip(pieces[3 * number : 3 * number + 3], record.order, strict=True):
            assert len(piece) == len(heard[stimulus])
            np.testing.assert_allclose(piece, heard[stimulus], atol=1e-7)

    # Every trial was kept; the score is shown now.
    kept = [one for one in trials.read(tmp_path / "data" / "listening").trials if one.session == records[0].session]
    assert [one.order for one in kept] == [one.order for one in records]
    assert all(one.answer == {"said": 0} and one.around.mode == "sync" for one in kept)
    hits = sum(one.order[2] == 0 for one in kept)
    outcome = results.result(kept)
    assert (outcome.hits, outcome.trials) == (hits, TRIALS)
    assert f"{hits} of {TRIALS} right" in window.panels["lab"].results.page.toPlainText()
    assert window.panels["listen"].isEnabled()
    picture = os.environ.get("PARETONE_ARTEFACTS")
    if picture:
        window.grab().save(str(Path(picture) / "lab-result.png"))
    close(window, qtbot)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_abx_in_a_window(display: str, tmp_path: Path) -> None:  # noqa: F811
    """A process has one platform for its whole life, so this one asks another to do it."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "xcb", "DISPLAY": display}
    job = f"{__file__}::{test_abx_by_keyboard.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "job"), job]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "1 passed" in done.stdout
