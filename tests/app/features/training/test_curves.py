"""The curves of a training show what the events said."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from paretone.techniques.guidance_free import FORM as GUIDANCE_FREE
from paretone.techniques.spade import FORM as STUDENT
from paretone.training.requests import TrainingProgress
from paretone_app.features.training.panel import TrainingCurves, _running_mean
from paretone_app.shell.colours import DARK, LIGHT


@pytest.fixture
def curves(qtbot: QtBot) -> TrainingCurves:
    made = TrainingCurves(LIGHT)
    qtbot.addWidget(made)
    made.show_figures(GUIDANCE_FREE.found)
    return made


def step(number: int, loss: float) -> TrainingProgress:
    return TrainingProgress(number, number / 100, float(number), None, {"loss": loss}, {})


def validation(number: int, learnt: float) -> TrainingProgress:
    return TrainingProgress(number, number / 100, float(number), None, {}, {"learnt": learnt, "gap": 1 - learnt})


def test_points_over_the_logarithm_of_the_step(curves: TrainingCurves, qtbot: QtBot) -> None:
    curves.add(validation(0, 0.0))
    for number in (1, 10, 100):
        curves.add(step(number, 1 / number))
    curves.add(validation(100, 0.75))
    qtbot.waitUntil(lambda: len(curves.loss.series) == 2)
    x, y = curves.loss.curves[0].getData()
    assert list(x) == pytest.approx([0, 1, 2])
    assert list(y) == pytest.approx([1, 0.1, 0.01])
    assert list(curves.loss.curves[1].getData()[1]) == pytest.approx([1, 0.55, 0.37])
    assert list(curves.validation.curves[0].getData()[0]) == pytest.approx([0, math.log10(100)])
    assert list(curves.validation.curves[1].getData()[1]) == pytest.approx([1, 0.25])
    assert "75 %" in curves._legend.text()


def test_a_resumed_run_takes_the_place_of_what_it_repeats(curves: TrainingCurves) -> None:
    for number in (1, 2, 3, 4):
        curves.add(step(number, 1.0))
    curves.add(step(3, 0.5))
    assert (curves.steps, curves.terms) == ([1, 2, 3], {"loss": [1.0, 1.0, 0.5]})
    curves.clear()
    assert curves.steps == []


def test_terms_of_a_loss_are_drawn_apart_and_divergence_as_a_share_of_the_first(
    curves: TrainingCurves, qtbot: QtBot
) -> None:
    curves.show_figures(STUDENT.found)
    for number in (1, 2):
        curves.add(TrainingProgress(number, 0.1, 1.0, None, {"latent": 10.0 * number, "attention": 0.001}, {}))
        curves.add(TrainingProgress(number, 0.1, 1.0, None, {}, {"divergence": 4.0 / number, "correct": 0.3}))
    qtbot.waitUntil(lambda: len(curves.loss.series) == 2)
    assert list(curves.loss.curves[0].getData()[1]) == pytest.approx([1.0, math.log10(15)])
    assert list(curves.loss.curves[1].getData()[1]) == pytest.approx([-3, -3])
    assert list(curves.validation.curves[0].getData()[1]) == pytest.approx([1.0, 0.5])
    assert "nats" in curves._legend.text()
    assert "attention" in curves._losses.text()


def test_a_term_that_is_taken_now_and_then_has_a_mean_of_its_own(curves: TrainingCurves) -> None:
    for number in range(1, 61):
        terms = {"latent": 2.0} | ({"attention": float(number)} if number % 20 == 0 else {})
        curves.add(TrainingProgress(number, 0.1, 1.0, None, terms, {}))
    means = _running_mean(curves.terms["attention"])
    assert len(means) == 60
    assert math.isnan(means[18])
    assert means[19] == 20
    assert means[41] == pytest.approx(30), "20 and 40 are among the last 25"
    assert means[-1] == pytest.approx(50)


def test_the_theme_reaches_the_plots(curves: TrainingCurves) -> None:
    curves.set_colours(DARK)
    for plot in (curves.loss, curves.validation):
        assert plot.grab().toImage().pixelColor(2, 2).name() == DARK.base


def test_curves_are_read_by_keys_and_copied_as_a_table(curves: TrainingCurves, qtbot: QtBot) -> None:
    for number in (1, 2, 3):
        curves.add(step(number, 1 / number))
    qtbot.waitUntil(lambda: len(curves.loss.series) == 2)
    assert curves.loss.accessibleDescription().startswith("Loss: ")
    for key, words in (
        (Qt.Key.Key_Home, "step 1: each step 1, loss 1"),
        (Qt.Key.Key_Right, "step 2: each step 0.5, loss 0.75"),
        (Qt.Key.Key_End, "step 3: each step 0.333, loss 0.611"),
        (Qt.Key.Key_PageDown, "step 2: each step 0.5, loss 0.75"),
    ):
        qtbot.keyClick(curves.loss, key)
        assert curves.loss.accessibleDescription() == words
    qtbot.keyClick(curves.loss, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "step\teach step\tloss" and lines[2] == "2\t0.5\t0.75"
    curves.add(step(4, 0.25))
    qtbot.waitUntil(lambda: len(curves.loss.series[0].x) == 4)
    assert curves.loss.accessibleDescription().startswith("step 2:"), "the cursor stays while the training goes on"
    curves.clear()
    assert curves.loss.accessibleDescription().startswith("Loss: ")
