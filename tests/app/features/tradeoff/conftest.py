"""Shared by tests of the trade-off panel."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from paretone.studies.gains import published
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import PlotOptions
from paretone_app.results.points import published_points
from tests.app.features.tradeoff.using import POINTS, choose_look, panel_of


@pytest.fixture
def panel(qtbot: QtBot) -> TradeoffPanel:
    made = panel_of(published_points(published()))
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
