"""Nothing moves while something runs: each control keeps its place before, during and after every kind of job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QScrollBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from paretone_app.shell.window import MainWindow
from tests.app.features.studies.studying import opened, write
from tests.engine.training.toy_model import toy_manifest

CONTROLS = (QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit)
Places = dict[QWidget, tuple[str, int, int]]


def places(window: MainWindow) -> Places:
    """Where each control is that can be seen."""
    found = {}
    for one in window.findChildren(QWidget):
        if isinstance(one, CONTROLS) and not isinstance(one, QScrollBar) and not one.visibleRegion().isEmpty():
            at = one.mapTo(window, QPoint())
            said = one.accessibleName() or getattr(one, "text", str)() or one.objectName()
            found[one] = f"{type(one).__name__} “{said}”", at.x(), at.y()
    return found


def moved(before: Places, after: Places) -> Iterator[str]:
    for one in before.keys() & after.keys():
        if before[one][1:] != after[one][1:]:
            yield f"{before[one][0]} from {before[one][1:]} to {after[one][1:]}"


@pytest.fixture
def jobs(borrowed_window: MainWindow, tmp_path: Path, qtbot: QtBot) -> dict[str, tuple[str, Callable[[], object]]]:
    """By name: the panel from which it is begun, and how."""
    window = borrowed_window
    panels, features, action = window.panels, window.features, window.action
    opened(window, write(tmp_path), qtbot)

    def train() -> None:
        panels["training"].manifest.setText(str(toy_manifest(tmp_path)))
        panels["training"].work.setText(str(tmp_path / "work"))
        panels["training"].minutes.setValue(0.1)
        panels["training"].start_button.click()

    return {
        "baseline": ("listen", action.baseline.trigger),
        "calibrate": ("threshold", action["calibrate"].trigger),
        "accelerated": ("listen", action.accelerated.trigger),
        "again": ("takes", action.accelerated.trigger),
        "view": ("views", panels["views"].compute_button.click),
        "attention": ("attention", panels["attention"].pages.empty.buttons[0].click),
        "roofline": ("roofline", lambda: features["roofline"].measure("A")),
        "transfer": ("transfer", panels["transfer"].pages.empty.buttons[0].click),
        "grid": ("grids", panels["grids"].pages.empty.buttons[0].click),
        "study": ("studies", window.action["run_study"].trigger),
        "studied again": ("tradeoff", action.baseline.trigger),
        "training": ("training", train),
    }


def test_no_control_moves_while_a_job_runs(
    borrowed_window: MainWindow, jobs: dict[str, tuple[str, Callable[[], object]]], qtbot: QtBot
) -> None:
    window, shifts, ran = borrowed_window, [], []
    window.resize(1440, 900)
    window.workspaces.default_layout()

    def settle() -> None:
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            QApplication.processEvents()

    for name, (panel, begin) in jobs.items():
        window.workspaces.go_to(panel)
        settle()
        before = places(window)
        assert len(before) > 10
        begin()
        if window.jobs.busy:
            ran.append(name)
        during = before
        while window.jobs.busy:
            qtbot.wait(20)
            during = during | places(window)
            shifts += [f"{name}, during: {one}" for one in moved(before, places(window))]
        settle()
        after = places(window)
        for earlier in (before, during):
            shifts += [f"{name}, after: {one}" for one in moved(earlier, after)]
    print(ran)
    print("\n".join(dict.fromkeys(shifts)))
    assert not shifts
    assert len(ran) == len(jobs)
