"""The drawn step grid shows the times that the engine passes."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from paretone.sampling.schedules import EPSS, time_grid
from paretone_app.features.setup.cards import StepGrid
from paretone_app.shell.colours import LIGHT


@pytest.fixture
def grid(qtbot: QtBot) -> StepGrid:
    made = StepGrid(LIGHT)
    qtbot.addWidget(made)
    return made


def test_the_effective_times_are_drawn_above_those_of_the_baseline(grid: StepGrid) -> None:
    grid.show_options({"steps": 7, "spacing": "epss", "sway": 0.0}, {"steps": 32, "spacing": "epss", "sway": 0.0})
    assert grid.times == pytest.approx([point / 32 for point in EPSS[7]])
    assert grid.others == pytest.approx([point / 32 for point in range(33)])
    grid.resize(320, grid.sizeHint().height())
    drawn = grid.grab().toImage()
    ink = [x for x in range(drawn.width()) if drawn.pixelColor(x, int(drawn.height() * 0.3)).name() == LIGHT.accent]
    starts = [x for x in ink if x - 1 not in ink]
    scale = drawn.width() / grid.width()
    assert starts == pytest.approx([time * (grid.width() - 2) * scale for time in grid.times], abs=2)
    assert "7 steps, EPSS" in grid.accessibleName()
    assert "baseline's: 32 steps" in grid.accessibleName()


def test_a_grid_follows_its_sway(grid: StepGrid) -> None:
    grid.show_options({"steps": 9, "spacing": "epss", "sway": -1.0})
    assert grid.times == pytest.approx(time_grid(9, "epss", -1.0))
    assert grid.others == ()
    assert "9 steps, uniform" in grid.accessibleName()


def test_a_model_without_a_grid_draws_none(grid: StepGrid) -> None:
    grid.show_options({"steps": 9})
    grid.show_options({})
    assert grid.times == ()
    assert grid.isHidden()
