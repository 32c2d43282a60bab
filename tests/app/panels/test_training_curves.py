"""The curves of a training show what the events said."""

from __future__ import annotations

import math

import pytest
from pytestqt.qtbot import QtBot

from app.panels.training_curves import TrainingCurves
from app.theme import DARK, LIGHT
from engine.messages import TrainingProgress


@pytest.fixture
def curves(qtbot: QtBot) -> TrainingCurves:
    made = TrainingCurves(LIGHT)
    qtbot.addWidget(made)
    return made


def step(number: int, loss: float) -> TrainingProgress:
    return TrainingProgress(1, number, number / 100, float(number), None, {"loss": loss}, {})


def validation(number: int, learnt: float) -> TrainingProgress:
    return TrainingProgress(1, number, number / 100, float(number), None, {}, {"learnt": learnt, "gap": 1 - learnt})


def test_points_over_the_logarithm_of_the_step(curves: TrainingCurves, qtbot: QtBot) -> None:
    curves.add(validation(0, 0.0))
    for number in (1, 10, 100):
        curves.add(step(number, 1 / number))
    curves.add(validation(100, 0.75))
    qtbot.waitUntil(lambda: curves._each.getData()[0] is not None)
    x, y = curves._each.getData()
    assert list(x) == pytest.approx([0, 1, 2])
    assert list(y) == pytest.approx([1, 0.1, 0.01])
    assert list(curves._mean.getData()[1]) == pytest.approx([1, 0.55, 0.37])
    assert list(curves._learnt.getData()[0]) == pytest.approx([0, math.log10(100)])
    assert list(curves._gap.getData()[1]) == pytest.approx([1, 0.25])
    assert "75%" in curves._legend.text()


def test_a_resumed_run_takes_the_place_of_what_it_repeats(curves: TrainingCurves) -> None:
    for number in (1, 2, 3, 4):
        curves.add(step(number, 1.0))
    curves.add(step(3, 0.5))
    assert (curves.steps, curves.losses) == ([1, 2, 3], [1.0, 1.0, 0.5])
    curves.clear()
    assert curves.steps == []


def test_the_theme_reaches_the_plots(curves: TrainingCurves) -> None:
    curves.set_colours(DARK)
    for plot in (curves._loss_plot, curves._validation_plot):
        assert plot.backgroundBrush().color().name() == DARK.base
