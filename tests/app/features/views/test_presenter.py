"""Views in the real window on the real engine thread: from the button to the figure and the file."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from paretone.session.events import Progress
from paretone.views import views
from paretone_app.features.views.panel import ViewsPanel
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.holding import Posts


@pytest.fixture
def posts(shared_posts: Posts) -> Posts:
    """By which the window's engine can be held."""
    return shared_posts


@pytest.fixture
def window(borrowed_window: MainWindow) -> MainWindow:
    """The window that all tests share."""
    return borrowed_window


def opened(window: MainWindow, name: str) -> ViewsPanel:
    window.workspaces.go_to("views")
    panel = window.panels["views"]
    panel.chooser.setCurrentIndex(panel.chooser.findData(name))
    return panel


def test_a_view_is_computed_and_written(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    panel = opened(window, "branch-redundancy")
    assert panel.compute_button.isEnabled()
    QTest.keyClick(panel.compute_button, Qt.Key.Key_Space)
    assert panel.cancel_button.isEnabled()
    qtbot.waitUntil(lambda: panel.figure is not None and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    made = panel.figure.provenance
    assert made.setting.options == window.state.selection.options
    assert made.utterances[0].text == window.state.selection.text
    assert panel.caption.text() == panel.figure.caption
    assert panel.compute_button.isEnabled()
    window.features["views"].write(panel.figure, tmp_path / "figure.csv")
    assert (tmp_path / "figure.csv").read_text(encoding="utf-8") == panel.figure.to_csv()


def test_a_view_is_cancelled(window: MainWindow, posts: Posts, qtbot: QtBot) -> None:
    panel = opened(window, "ablation")
    progress: list[Progress] = []
    window.bridge.progress.connect(progress.append)
    posts.hold_at(Progress)
    QTest.keyClick(panel.compute_button, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: bool(progress), timeout=PATIENCE_MILLISECONDS)
    QTest.keyClick(panel.cancel_button, Qt.Key.Key_Space)
    posts.go_on()
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    assert panel.figure is None
    assert panel.state.startswith("Cancelled")
    assert panel.compute_button.isEnabled()


def test_what_cannot_be_computed_is_said_where_it_was_asked_for(window: MainWindow, qtbot: QtBot) -> None:
    panel = opened(window, "guidance-weight")
    QTest.keyClick(panel.compute_button, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    assert "train some, for example with w = 0.5" in panel.state
    panel.chooser.setCurrentIndex(0)
    assert "train some" not in panel.state


def test_every_view_draws_what_the_engine_computes(window: MainWindow, qtbot: QtBot) -> None:
    quick = {"temporal-redundancy", "branch-redundancy", "attention-similarity"}
    window.state.selection.set_option("steps", 3)
    for one in views():
        if one.name in quick:
            panel = opened(window, one.name)
            QTest.keyClick(panel.compute_button, Qt.Key.Key_Space)
            qtbot.waitUntil(
                lambda name=one.name, panel=panel: name in panel._figures and not window.jobs.busy,
                timeout=PATIENCE_MILLISECONDS,
            )
            assert len(panel.canvas.plots) == len(panel.figure.panels)


def test_changing_views_and_themes_leaves_the_windows_actions_alone(
    window: MainWindow, theme: Theme, qtbot: QtBot
) -> None:
    for scheme in (Scheme.LIGHT, Scheme.DARK, Scheme.LIGHT):
        theme.apply(scheme)
        for one in views():
            if "flow" in one.families:
                opened(window, one.name)
        qtbot.wait(50)
        gc.collect()
    assert isValid(window.action.undo)
    window.notices.say("A message.")
    assert window.notices.banner.isVisible()
