"""Closing the main window: at work, many times, before it is painted; nothing stays behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.techniques.ditreducio.record import CalibrationRequest
from paretone_app.shell.colours import DARK
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.workload import workload


def test_closing_twice_while_it_calibrates_waits_for_the_engine(window: MainWindow, qtbot: QtBot) -> None:
    window.state.selection.set_option("steps", 128)
    window.action["calibrate"].trigger()
    window.close()
    window.close()
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=PATIENCE_MILLISECONDS)
    assert window._engine.join(0)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_closing_during_calibration_again_and_again(make_window: Callable[..., MainWindow], qtbot: QtBot) -> None:
    before = threading.active_count()
    for _ in range(workload(50, 2)):
        window = make_window()
        window.show()
        # The model is ready a moment before its loading has ended, and only then can anything else begin.
        qtbot.waitUntil(
            lambda window=window: window.state.selection.ready and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS
        )
        window.state.selection.set_option("steps", 128)
        window.action["calibrate"].trigger()
        assert isinstance(window.jobs.running[-1].command.request, CalibrationRequest)
        close(window, qtbot)
    qtbot.waitUntil(lambda: threading.active_count() <= before, timeout=PATIENCE_MILLISECONDS)


def _open_and_close(window: MainWindow, qtbot: QtBot) -> None:
    window.show()
    qtbot.waitUntil(lambda: window.is_built, timeout=PATIENCE_MILLISECONDS)
    close(window, qtbot)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_a_closed_window_leaves_no_widget_to_the_collector(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    gc.collect()
    before = set(QApplication.allWidgets())
    gc.disable()
    try:
        _open_and_close(make_window(), qtbot)
        left = [one for one in QApplication.allWidgets() if one not in before]
    finally:
        gc.enable()
    assert not left, "the collector would destroy them on the engine's thread"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_theme_can_change_after_many_closed_windows(
    make_window: Callable[..., MainWindow], theme: Theme, qtbot: QtBot
) -> None:
    for _ in range(workload(30, 2)):
        _open_and_close(make_window(), qtbot)
    for scheme in (Scheme.DARK, Scheme.LIGHT) * workload(5, 1):
        theme.apply(scheme)
        gc.collect()
    window = make_window()
    window.show()
    theme.apply(Scheme.DARK)
    assert window.palette().color(QPalette.ColorRole.Window) == QColor(DARK.window)
    close(window, qtbot)


def test_closing_before_the_first_paint_needs_no_engine(make_window: Callable[..., MainWindow], qtbot: QtBot) -> None:
    window = make_window()
    close(window, qtbot)
    assert window._engine is None
