"""Shared by tests of the trade-off panel."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from paretone.setting.take import Take
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import PlotOptions
from paretone_app.results.points import Scores, published_points
from paretone_app.results.study import read_study
from tests.app.features.tradeoff.using import POINTS, SENTENCES, choose_look, panel_of
from tests.engine.studies.small import finished, study


@pytest.fixture
def panel(qtbot: QtBot) -> TradeoffPanel:
    made = panel_of(published_points())
    qtbot.addWidget(made)
    made.resize(1000, 640)
    choose_look(made, PlotOptions())
    made.show_points(POINTS)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    made.plot.setFocus()
    qtbot.waitUntil(made.plot.hasFocus)
    return made


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of a baseline, fewer steps, DiTReducio, and both."""
    folder = tmp_path_factory.mktemp("study") / "small.study"
    grid = {"steps": {"steps": ["off", 2]}, "ditreducio": {"threshold": ["off", 0.3]}}
    finished(folder, study(sentences=SENTENCES, grid=grid, title="Four settings"))
    return folder


@pytest.fixture(scope="module")
def kept(results: Path) -> tuple[Take, ...]:
    """Two takes of the study: of the baseline and of DiTReducio."""
    read = read_study(results, results.with_suffix(".toml"), scores=Scores())
    return tuple(read.load(one.sounds[1].take) for one in read.parts.points if one.techniques in ((), ("ditreducio",)))
