"""The multistep technique: its plan, its sentences, speech with it."""

import dataclasses
from typing import cast

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.models.base import SpeechModel, Utterance
from paretone.models.f5.config import OPTIONS as F5_OPTIONS
from paretone.models.megatts3.config import OPTIONS as MEGA_OPTIONS
from paretone.observer import Observer
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements
from paretone.speaking import scripted, synthesise
from paretone.techniques import conflict, multistep, resolve
from paretone.techniques.multistep import TECHNIQUE
from paretone.techniques.multistep.view import plain, slope
from paretone.views import compute_view
from paretone.views.view import Task
from tests.engine.analytic_flow import AnalyticFlow
from tests.engine.small_speech import VOICE, load, setting

NAME = "order-of-convergence"


def stepping(steps: int = 4, *others: UsedTechnique, **knobs: object) -> Setting:
    chosen = setting(steps).with_technique(UsedTechnique("multistep", Values(knobs)))
    return dataclasses.replace(chosen, techniques=(*chosen.techniques, *others))


def spoken(speech, chosen: Setting) -> tuple[np.ndarray, Measurements]:
    found = synthesise(speech, "One.", VOICE, chosen)
    return found.samples, found.measurements


def test_flow_models_speak_with_it_with_as_many_evaluations_as_steps() -> None:
    speech = load()
    plain, few = spoken(speech, setting(4))
    found, measured = spoken(speech, stepping(method="stork2"))
    assert measured.evaluations == few.evaluations == 4 and measured.ops_ratio == pytest.approx(1.0)
    assert np.isfinite(found).all() and not np.array_equal(found, plain)


def test_steps_are_counted_on_the_grid() -> None:
    speech = load()
    chosen = stepping(start="midpoint")
    _, measured = spoken(speech, chosen)
    assert measured.evaluations == 5 and measured.ops_ratio == pytest.approx(5 / 4)
    plan = resolve(speech.info, chosen)
    assert plan.evaluations == 5 and plan.ops_ratio(OperationCounts(1.0, 1.0, 1.0, 3, 2)) == pytest.approx(5 / 4)
    # Of four steps two are guided; the midpoint start adds an evaluation to the first of them.
    chosen = stepping(4, UsedTechnique("guidance_interval", Values(steps=2)), start="midpoint")
    _, measured = spoken(speech, chosen)
    assert measured.evaluations == 5
    counts = speech.operations(scripted(speech, "One.", VOICE, chosen, prepared=False))
    assert measured.ops_ratio == pytest.approx(resolve(speech.info, chosen).ops_ratio(counts), rel=0.02)
    assert any("extrapolates wrongly" in note for note in resolve(speech.info, chosen).notes)
    assert np.array_equal(spoken(speech, stepping(1))[0], spoken(speech, setting(1))[0])
    assert any("it is Euler's" in note for note in resolve(speech.info, stepping(1)).notes)


def test_another_solver_is_refused_and_noise_of_every_step_is_remarked_on() -> None:
    chosen = Setting("f5-mini", Values(solver="midpoint"), (UsedTechnique("multistep"),))
    assert "choose the Euler solver" in str(conflict(chosen, "multistep"))
    with pytest.raises(SettingError, match="do without Multistep solver"):
        resolve(load().info, stepping(4, UsedTechnique("ditreducio")))
    knobs = checked(TECHNIQUE.knobs, {}, "it")
    said = multistep.remarks(checked(MEGA_OPTIONS, {}, "a model"), knobs)
    assert any("every step adds noise" in one for one in said)
    assert multistep.remarks(checked(F5_OPTIONS, {}, "a model"), knobs) == ()
    few = multistep.remarks(checked(F5_OPTIONS, {"steps": 6}, "a model"), knobs)
    assert len(few) == 1 and "further away than Euler" in few[0]


def task(**knobs: object) -> Task:
    return Task(load(), Utterance("One.", VOICE), setting(4), Values(knobs), Observer())


def test_solvers_of_a_higher_order_come_nearer() -> None:
    known = dataclasses.replace(task(doublings=3, even=True), model=cast(SpeechModel, AnalyticFlow()))
    figure = compute_view(NAME, known)
    (panel,) = figure.panels
    curves = {one.name: one for one in panel.curves}
    assert len(curves) == 5 and curves.keys() > {"Euler", "Midpoint", "STORK-2"}
    assert panel.x.logarithmic and panel.y.logarithmic
    counts = (4, 8, 16, 32)
    assert curves["Euler"].x == counts and curves["Midpoint"].x == tuple(2.0 * one for one in counts)
    orders = {name: slope(counts, one.y) for name, one in curves.items()}
    assert 0.7 < orders["Euler"] < 1.4
    assert all(order > 1.6 for name, order in orders.items() if name != "Euler"), orders
    assert f"Euler {orders['Euler']:.2f}" in figure.caption
    assert curves["Euler"].notes[0] == "4 steps" and "8 steps, order" in curves["Euler"].notes[1]


def test_a_real_model_is_looked_at_from_one_noise() -> None:
    used = [UsedTechnique("steps"), UsedTechnique("multistep"), UsedTechnique("precision")]
    left = plain(dataclasses.replace(setting(4, solver="midpoint"), techniques=tuple(used)))
    assert [one.technique for one in left.techniques] == ["precision"] and "solver" not in left.options
    figure = compute_view(NAME, task(doublings=1))
    errors = {one.name: one.y for one in figure.panels[0].curves}
    assert len(errors) == 5 and all(0 < error < 1 for row in errors.values() for error in row)
    assert errors["Euler"][1] < errors["Euler"][0]
