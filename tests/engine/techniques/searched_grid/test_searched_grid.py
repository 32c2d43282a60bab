"""Placed grids: their plan, what they belong to, their place in profiles."""

import csv
import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from paretone import models
from paretone.errors import ProfileError
from paretone.models.f5.adapter import F5Speech
from paretone.models.families.evaluations import times_of
from paretone.sampling.flow import sampling_grid
from paretone.setting.knobs import Values
from paretone.setting.plan import NotPrepared
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.studies.running import FINISHED
from paretone.studies.store import Store
from paretone.techniques import compatibility_of, conflict, foreseen, resolve
from paretone.techniques.searched_grid import PlacedGrid, hooks, placed_for
from paretone.techniques.searched_grid.hooks import Placed, placed_of
from tests.engine.command_line import Console, Outcome
from tests.engine.small_speech import VOICE, setting
from tests.engine.small_speech import load as model
from tests.engine.studies import small
from tests.engine.studies.small import Follower, finished, study

NAME = "searched_grid"
TIMES = (0.0, 0.1, 0.3, 1.0)
Run = Callable[..., Outcome]
SEARCH = ("--passes", 1, "--text", "One.", "--sway", 0, "--json", "--quiet")


def placed(speech, times: tuple[float, ...] = TIMES, **options: object) -> PlacedGrid:
    return PlacedGrid(placed_for(compatibility_of(speech.info, setting(4, **options)), len(times) - 1), times)


def using(grid: PlacedGrid | None, *others: UsedTechnique, steps: int = 4, **knobs: object) -> Setting:
    chosen = setting(steps)
    for one in others:
        chosen = chosen.with_technique(one)
    if grid is not None:
        knobs = {"evaluations": grid.steps, **knobs}
    return chosen.with_technique(UsedTechnique(NAME, Values(knobs), grid.fingerprint if grid else ""))


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
    grid = placed(speech, tuple(sampling_grid(4, "uniform", -1.0).tolist()))
    assert np.array_equal(spoken(speech, using(grid), grid).samples, spoken(speech, setting(4)).samples)
    grid = placed(speech)
    chosen = using(grid, UsedTechnique("multistep", Values(start="midpoint")))
    assert spoken(speech, chosen, grid).measurements.evaluations == 4
    plan = resolve(speech.info, chosen, (grid,))
    assert times_of(plan)[:3] == pytest.approx([0.0, 0.05, 0.1])
    assert any("placed for Euler, and Multistep solver (" in note for note in plan.notes)


def test_without_a_fitting_grid_it_is_not_prepared() -> None:
    speech = model()
    grid, others = placed(speech), setting(4, spacing="epss", sway=0.0)
    replaced = dataclasses.replace(using(grid), options=others.options.replace(steps=9))
    assert resolve(speech.info, replaced, (grid,)).times == TIMES, "the options that it replaces do not matter"
    with pytest.raises(NotPrepared, match="search them first"):
        resolve(speech.info, using(None))
    assert resolve(speech.info, using(None, evaluations=6), prepared=False).options["steps"] == 6
    strange = dataclasses.replace(grid, compatibility=dataclasses.replace(grid.compatibility, fingerprint="1" * 64))
    with pytest.raises(ProfileError, match="checkpoint"):
        resolve(speech.info, using(strange), (strange,))
    with pytest.raises(ProfileError, match="has 3 evaluations, but 4 are set"):
        resolve(speech.info, using(grid, evaluations=4), (grid,))


def test_what_it_cannot_go_with_is_said() -> None:
    midpoint = Setting("f5-mini", Values(solver="midpoint"), (UsedTechnique(NAME),))
    assert "choose the Euler solver" in str(conflict(midpoint, NAME))
    two = Setting("f5-mini", Values(), (UsedTechnique(NAME), UsedTechnique("steps")))
    assert "both decide about grid" in str(conflict(two))
    tables = Setting("f5-mini", Values(), (UsedTechnique(NAME), UsedTechnique("ditreducio")))
    assert "do without Searched grid" in str(conflict(tables))
    assert foreseen(Setting("f5-mini", Values(), (UsedTechnique(NAME),))).options["steps"] == 5


def test_a_profile_keeps_it_and_damage_is_named_by_its_field() -> None:
    speech = model()
    for change, said in (
        ({"times": [0.0, 0.5, 1.0]}, "has 2 steps, but says that it belongs to 3"),
        ({"times": [0.0, "0.5", 0.7, 1.0]}, "must be a number"),
        ({"belonging": {}}, "grid.belonging lacks the field 'model'"),
    ):
        with pytest.raises(ProfileError, match=said):
            PlacedGrid.from_json({**placed(speech).to_json(), **change}, "grid")
    info = dataclasses.replace(speech.info, id="f5-mini")
    grid = PlacedGrid(dataclasses.replace(placed(speech).compatibility, model="f5-mini"), TIMES, origin="searched")
    chosen = dataclasses.replace(using(grid), model="f5-mini")
    assert dataclasses.replace(grid, origin="other words").fingerprint == grid.fingerprint
    assert dataclasses.replace(grid, times=(0.0, 0.1, 0.4, 1.0)).fingerprint != grid.fingerprint
    profile = Profile.of(chosen, info, (grid,))
    read = Profile.from_json(profile.to_json())
    assert read == profile and read.artefacts == (grid,) and read.setting.technique(NAME).knobs["evaluations"] == 3
    data = profile.to_json()
    data["setting"]["options"]["guidance"] = 0.5
    with pytest.raises(ProfileError, match=r"grid\.belonging\.sampling\.guidance is 2\.0"):
        Profile.from_json(data)
    data = profile.to_json()
    data["setting"]["techniques"][0]["knobs"]["evaluations"] = 4
    with pytest.raises(ProfileError, match=r"3 steps, but setting\.techniques says 4 evaluations"):
        Profile.from_json(data)


def loaded_small(model: str, **given: object) -> F5Speech:
    """The small model under the name of the bundled one."""
    speech = small.load(model, **given)
    speech.info = dataclasses.replace(speech.info, id=model)
    return speech


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(models, "load_model", loaded_small)
    return Console(capsys)


def test_a_grid_is_searched_written_and_spoken_with(run: Run, tmp_path: Path) -> None:
    grid, profile = tmp_path / "grid.json", tmp_path / "profile.json"
    found = run("search-grid", "--evaluations", 2, 3, "--grid", grid, "--profile", profile, *SEARCH)
    assert found.code == 0, found.err
    two, three = found.data["searches"]
    assert [one["evaluations"] for one in (two, three)] == [2, 3]
    assert three["value"] <= min(one["value"] for one in three["starts"])
    assert [one["title"] for one in two["starts"]] == ["sway −1", "even"]
    written = PlacedGrid.from_json(json.loads((tmp_path / "grid-3.json").read_text()))
    assert list(written.times) == three["times"] and written.fingerprint == three["fingerprint"]
    assert Profile.load(tmp_path / "profile-2.json").artefact("grid").steps == 2
    spoken = run("speak", "--grid", tmp_path / "grid-3.json", "--text", "One.", "--out", tmp_path / "o.wav", "--json")
    assert spoken.code == 0, spoken.err
    (used,) = spoken.data["setting"]["techniques"]
    assert used["technique"] == NAME and used["artefact"] == three["fingerprint"]
    assert spoken.data["ops_ratio"] == pytest.approx(3 / 12)
    other = run("speak", "--grid", tmp_path / "grid-3.json", "--guidance", 1.5, "--text", "One.", "--out", "o")
    assert other.code and "guidance strength" in other.err and "Search again" in other.err


def test_what_is_refused_and_files_that_are_no_grid_are_named(run: Run, tmp_path: Path) -> None:
    for arguments, said in (
        ((4,), "give --grid or --profile"),
        ((4, 4, "--grid", "g.json"), "has a number twice"),
        ((13, "--grid", "g.json"), "Evaluations must lie between 2 and 12"),
    ):
        found = run("search-grid", "--evaluations", *arguments)
        assert found.code and said in found.err
    path = tmp_path / "grid.json"
    for content, said in (("", "There is no placed grid"), ("{", "it is not JSON"), ("{}", "lacks the field")):
        assert not content or path.write_text(content)
        found = run("speak", "--grid", path, "--text", "One.", "--out", tmp_path / "o.wav")
        assert found.code and said in found.err


def test_what_cannot_be_measured_is_no_number(run: Run, tmp_path: Path) -> None:
    """The small model has no pitch, and JSON knows no infinity."""
    given = ("--evaluations", 2, "--objective", "pitch_error", "--grid", tmp_path / "grid.json")
    found = run("search-grid", *given, *SEARCH)
    assert found.code == 0, found.err
    (one,) = found.data["searches"]
    assert one["value"] is None and {start["value"] for start in one["starts"]} == {None}
    assert one["unit"].startswith("F0 error")
    shown = run("search-grid", *given, *SEARCH[:-2], "--restart")
    assert shown.code == 0 and " inf" not in shown.out and "Pass 1, time 1 of 1" in shown.err
    assert "0.000 " in shown.out and "Wrote the grid to" in shown.out


def test_a_study_searches_a_grid_for_each_number_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "data"))
    steps = {"steps": {"steps": [2, 3], "spacing": ["uniform"]}}
    grid = [steps, {"searched_grid": {"evaluations": [2, 3], "passes": [1]}}]
    chosen = study(sentences=["One sentence."], calibration=["Another."], grid=grid)
    follower = Follower()
    assert finished(tmp_path / "s", chosen, follower) == FINISHED
    with Store(tmp_path / "s") as store:
        takes, grids, files = list(store.takes()), store.artefacts(), hooks.files(store)
    found = [one for one in grids.values() if isinstance(one, PlacedGrid)]
    assert sorted(one.steps for one in found) == [2, 3]
    assert len(takes) == 5 and max(follower.shares) == 1.0
    rows = list(csv.DictReader(io.StringIO(files["grids.csv"])))
    found = {(row["grid"], row["evaluations"]): float(row["value"]) for row in rows}
    both = {(kind, number) for kind in ("searched (O3S)", "sway −1") for number in ("2", "3")}
    assert set(found) == {*both, ("sway −1", "4")}, "the last is the baseline"
    assert {(row["figure"], row["solver"]) for row in rows} == {("log_mel_distance", "Euler")}
    assert files["grids.svg"].startswith("<svg") and "searched (O3S), 3 evaluations" in files["grids.svg"]


def test_kinds_of_grids() -> None:
    def of(*techniques: UsedTechnique, model: str = "f5-mini", **options: object) -> Placed | None:
        return placed_of(Setting(model, Values(options), techniques))

    assert of(steps=7) == Placed("EPSS", "Euler", 7) and of(steps=7, spacing="uniform") == Placed("sway −1", "Euler", 7)
    assert of(steps=7, spacing="uniform", sway=0.0) == Placed("even", "Euler", 7)
    naturalness = UsedTechnique("searched_grid", Values(objective="naturalness", search="coordinate"))
    assert of(naturalness) == Placed("searched (coordinate by naturalness)", "Euler", 5)
    found = of(UsedTechnique("multistep", Values(start="midpoint")), steps=4)
    assert found is not None and found.evaluations == 5 and found.solver.startswith("Multistep solver (")
    assert of(UsedTechnique("precision")) is None, "more is decided"
    assert of(solver="midpoint") is None and of(model="lm-mini") is None
