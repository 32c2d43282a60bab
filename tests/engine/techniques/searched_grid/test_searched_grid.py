"""Placed grids: their plan, what they belong to, their place in profiles."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from paretone.errors import ProfileError
from paretone.models.families.evaluations import times_of
from paretone.sampling.flow import sampling_grid
from paretone.setting.knobs import Values
from paretone.setting.plan import NotPrepared
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques import conflict, foreseen, resolve, technique
from paretone.techniques.searched_grid import PlacedGrid, placed_for
from tests.engine.small_speech import VOICE, setting
from tests.engine.techniques.searched_grid.grids import NAME, TIMES, model, placed, using


def spoken(speech, chosen: Setting, *grids: PlacedGrid):
    return synthesise(speech, "One.", VOICE, chosen, grids)


def test_the_placed_times_are_those_of_the_run() -> None:
    speech = model()
    grid = placed(speech)
    plan = resolve(speech.info, using(grid), (grid,))
    assert plan.options["steps"] == plan.evaluations == 3
    assert np.array_equal(times_of(plan), np.array(TIMES, np.float32))
    found = spoken(speech, using(grid), grid)
    assert found.measurements.evaluations == 3 and found.measurements.ops_ratio == pytest.approx(3 / 4)


def test_the_times_of_a_known_grid_speak_as_that_grid() -> None:
    speech = model()
    grid = placed(speech, tuple(sampling_grid(4, "uniform", -1.0).tolist()))
    assert np.array_equal(spoken(speech, using(grid), grid).samples, spoken(speech, setting(4)).samples)


def test_the_first_step_of_a_placed_grid_can_be_halved() -> None:
    speech = model()
    grid = placed(speech)
    chosen = using(grid, UsedTechnique("multistep", Values(start="midpoint")))
    assert spoken(speech, chosen, grid).measurements.evaluations == 4
    plan = resolve(speech.info, chosen, (grid,))
    assert times_of(plan)[:3] == pytest.approx([0.0, 0.05, 0.1])
    assert any("placed for Euler, and Multistep solver (" in note for note in plan.notes)


def test_without_a_search_it_is_not_prepared() -> None:
    speech = model()
    with pytest.raises(NotPrepared, match="search them first"):
        resolve(speech.info, using(None))
    assert resolve(speech.info, using(None, evaluations=6), prepared=False).options["steps"] == 6


@pytest.mark.parametrize(
    ("options", "evaluations", "said"),
    [
        ({"guidance": 1.0}, 3, "guidance strength 1.0, but 2.0 is in use"),
        ({}, 4, "has 3 evaluations, but 4 are set"),
    ],
)
def test_a_grid_for_something_else_is_refused(options: dict, evaluations: int, said: str) -> None:
    speech = model()
    grid = placed(speech, **options)
    chosen = dataclasses.replace(using(grid, evaluations=evaluations), options=setting(4, guidance=2.0).options)
    with pytest.raises(ProfileError, match=said):
        resolve(speech.info, chosen, (grid,))


def test_a_grid_of_another_checkpoint_is_refused() -> None:
    speech = model()
    grid = placed(speech)
    other = dataclasses.replace(grid.compatibility, fingerprint="1" * 64)
    strange = dataclasses.replace(grid, compatibility=other)
    with pytest.raises(ProfileError, match="checkpoint"):
        resolve(speech.info, using(strange), (strange,))


def test_the_options_that_it_replaces_do_not_matter() -> None:
    speech = model()
    grid = placed(speech)
    others = setting(4, spacing="epss", sway=0.0)
    chosen = dataclasses.replace(using(grid), options=others.options.replace(steps=9))
    assert resolve(speech.info, chosen, (grid,)).times == TIMES


def test_what_it_cannot_go_with_is_said() -> None:
    midpoint = Setting("f5-mini", Values(solver="midpoint"), (UsedTechnique(NAME),))
    assert "choose the Euler solver" in str(conflict(midpoint, NAME))
    two = Setting("f5-mini", Values(), (UsedTechnique(NAME), UsedTechnique("steps")))
    assert "both decide about grid" in str(conflict(two))
    tables = Setting("f5-mini", Values(), (UsedTechnique(NAME), UsedTechnique("ditreducio")))
    assert "do without Searched grid" in str(conflict(tables))
    assert foreseen(Setting("f5-mini", Values(), (UsedTechnique(NAME),))).options["steps"] == 5


def test_grids_are_known_by_what_they_do() -> None:
    grid = placed(model())
    assert dataclasses.replace(grid, origin="other words").fingerprint == grid.fingerprint
    assert dataclasses.replace(grid, times=(0.0, 0.1, 0.4, 1.0)).fingerprint != grid.fingerprint
    assert PlacedGrid.from_json(grid.to_json()) == grid


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"times": [0.0, 0.5, 0.4, 1.0]}, "must rise from 0 to 1"),
        ({"times": [0.0, 0.5, 1.0]}, "has 2 steps, but says that it belongs to 3"),
        ({"times": [0.0, "0.5", 0.7, 1.0]}, "must be a list of numbers"),
        ({"solver": 3}, "grid.solver must be of type str"),
        ({"more": 1}, "unknown field 'more'"),
        ({"belonging": {}}, "grid.belonging lacks the field 'model'"),
    ],
)
def test_damaged_files_are_named_by_their_field(change: dict, said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        PlacedGrid.from_json({**placed(model()).to_json(), **change}, "grid")


def test_a_profile_keeps_it() -> None:
    speech = model()
    info = dataclasses.replace(speech.info, id="f5-mini")
    belonging = dataclasses.replace(placed(speech).compatibility, model="f5-mini")
    grid = PlacedGrid(belonging, TIMES, origin="searched")
    chosen = dataclasses.replace(using(grid), model="f5-mini")
    profile = Profile.of(chosen, info, (grid,))
    read = Profile.from_json(profile.to_json())
    assert read == profile and read.artefacts == (grid,)
    assert read.setting.technique(NAME).knobs["evaluations"] == 3
    data = profile.to_json()
    data["setting"]["options"]["guidance"] = 0.5
    with pytest.raises(ProfileError, match=r"grid\.belonging\.sampling\.guidance is 2\.0"):
        Profile.from_json(data)
    data = profile.to_json()
    data["setting"]["techniques"][0]["knobs"]["evaluations"] = 4
    with pytest.raises(ProfileError, match=r"3 steps, but setting\.techniques says 4 evaluations"):
        Profile.from_json(data)


def test_other_weights_need_another_search() -> None:
    """What runs is told by the techniques that resolve later."""
    compatibility = placed(model()).compatibility
    kept = placed_for(dataclasses.replace(compatibility, sampling=compatibility.sampling.replace(steps=9)), 3)
    assert kept == compatibility
    assert technique(NAME).artefact.knobs(placed(model()), Values(evaluations=7))["evaluations"] == 3
