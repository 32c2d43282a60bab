"""The real window with the lab in front and takes that can be compared, and what a listener does there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.listening import trials
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Take
from paretone_app.features.lab.panel import LIBRARY
from paretone_app.shell.window import MainWindow

PLAIN = Setting("f5-mini", seed=7)
FAST = PLAIN.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.2}), "a" * 16))
RATE = 24000


def take(number: int, setting: Setting, text: str) -> Take:
    samples = (0.1 * np.random.default_rng(number).standard_normal(RATE // 2)).astype(np.float32)
    created = f"2026-01-01T00:00:{number:02d}.000+00:00"
    return Take(f"{number:032x}", created, text, "anna", setting, RATE, samples)


TAKES = [take(2 * n + place, one, f"Sentence {n}.") for n in range(3) for place, one in enumerate((PLAIN, FAST))]


@contextmanager
def at_the_lab(window: MainWindow, qtbot: QtBot) -> Iterator[None]:
    """The takes are in the library and the lab is in front; afterwards there are no results, and what was chosen for a
    test is what is chosen at first."""
    presenter, setup = window.features["lab"], window.panels["lab"].setup
    for one in TAKES:
        window.results.takes.add(one)
    window.activateWindow()
    window.action["listening_test"].trigger()
    qtbot.waitUntil(window.panels["lab"].isVisible)
    first = setup.choice
    yield
    lab = window.panels["lab"]
    if lab.volume is not None:
        lab.volume.leave_button.click()
    if lab.trial is not None:
        for _ in range(2):
            lab.trial.leave_button.click()
    lab.show_setup()
    for box in (setup.source, setup.method):
        box.setCurrentIndex(0)
    setup.length.setValue(first.length)
    setup.practice.setValue(first.practice)
    listening = folder_of(window) / trials.FOLDER
    if listening.is_file():
        listening.unlink()
    else:
        shutil.rmtree(listening, ignore_errors=True)
    presenter._show_listeners()
    setup.listener.setCurrentIndex(0)
    window.panels["lab"].shown.emit()
    qtbot.waitUntil(lambda: bool(window.panels["lab"].can["write_results"].reason))


def folder_of(window: MainWindow) -> Path:
    """The folder of the window's data."""
    return window.results.library.folder.parent


def compare(window: MainWindow) -> None:
    window.state.comparison.set_a(TAKES[0])
    window.state.comparison.set_b(TAKES[1])


def tick_all(window: MainWindow) -> None:
    setup = window.panels["lab"].setup
    setup.source.setCurrentIndex(setup.source.findData(LIBRARY))
    for row in range(setup.ticks.count()):
        setup.ticks.item(row).setCheckState(Qt.CheckState.Checked)


def ask_for_a_test(window: MainWindow, length: int = 2, practice: int = 0) -> None:
    lab = window.panels["lab"]
    lab.setup.length.setValue(length)
    lab.setup.practice.setValue(practice)
    assert lab.setup.begin_button.isEnabled(), lab.setup.begin_button.toolTip()
    lab.setup.begin_button.click()


def come_to_the_volume(window: MainWindow, qtbot: QtBot, length: int = 2, practice: int = 0) -> None:
    ask_for_a_test(window, length, practice)
    qtbot.waitUntil(lambda: window.panels["lab"].volume is not None)


def begin(window: MainWindow, qtbot: QtBot, length: int = 2, practice: int = 0) -> None:
    come_to_the_volume(window, qtbot, length, practice)
    window.panels["lab"].volume.begin_button.click()
    assert window.panels["lab"].trial is not None


def answer(window: MainWindow) -> None:
    page = window.panels["lab"].trial
    page.hear(2)
    page.say(0)
