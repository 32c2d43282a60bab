"""The view of the orders of convergence."""

from __future__ import annotations

import dataclasses
import math
from typing import cast

import pytest

from paretone.models.base import SpeechModel, Utterance
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques.multistep.view import plain, slope
from paretone.views import compute_view
from paretone.views.view import Task
from tests.engine.analytic_flow import AnalyticFlow
from tests.engine.small_speech import VOICE, load, setting

NAME = "order-of-convergence"


def task(**knobs: object) -> Task:
    speech = load("small", "", "", "cpu", lambda text: None, lambda: None)
    return Task(speech, Utterance("One.", VOICE), setting(4), Values(knobs), Observer())


def test_solvers_of_a_higher_order_come_nearer() -> None:
    known = dataclasses.replace(task(doublings=3, even=True), model=cast(SpeechModel, AnalyticFlow()))
    figure = compute_view(NAME, known)
    (panel,) = figure.panels
    curves = {one.name: one for one in panel.curves}
    assert set(curves) == {
        "Euler",
        "Midpoint",
        "Adams–Bashforth 2",
        "Predictor–corrector (after UniPC)",
        "STORK-2",
    }
    assert panel.x.logarithmic and panel.y.logarithmic
    counts = (4, 8, 16, 32)
    assert curves["Euler"].x == counts and curves["Midpoint"].x == tuple(2.0 * one for one in counts)
    orders = {name: slope(counts, one.y) for name, one in curves.items()}
    assert 0.7 < orders["Euler"] < 1.4
    assert all(order > 1.6 for name, order in orders.items() if name != "Euler"), orders
    assert f"Euler {orders['Euler']:.2f}" in figure.caption
    assert curves["Euler"].notes[0] == "4 steps" and "8 steps, order" in curves["Euler"].notes[1]


def test_a_real_model_is_looked_at_from_one_noise() -> None:
    figure = compute_view(NAME, task(doublings=1))
    errors = {one.name: one.y for one in figure.panels[0].curves}
    assert len(errors) == 5 and all(0 < error < 1 for row in errors.values() for error in row)
    assert errors["Euler"][1] < errors["Euler"][0]


def test_slopes() -> None:
    assert slope((4, 8, 16), (1.0, 0.25, 0.0625)) == pytest.approx(2.0)
    assert math.isnan(slope((4, 8), (1.0, 0.0)))


def test_what_decides_about_grid_and_solver_is_left_out() -> None:
    used = [UsedTechnique("steps"), UsedTechnique("multistep"), UsedTechnique("precision")]
    chosen = dataclasses.replace(setting(4, solver="midpoint"), techniques=tuple(used))
    found = plain(chosen)
    assert [one.technique for one in found.techniques] == ["precision"]
    assert "solver" not in found.options
