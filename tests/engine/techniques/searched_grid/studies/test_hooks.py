"""Studies search the grids of their settings, and compare them with others at equal evaluations."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.running import FINISHED
from paretone.studies.store import Store
from paretone.techniques.searched_grid import PlacedGrid, hooks
from paretone.techniques.searched_grid.hooks import Placed, placed_of
from tests.engine.studies.small import Follower, finished, study


def test_a_study_searches_a_grid_for_each_number_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "data"))
    chosen = study(
        sentences=["One sentence."],
        calibration=["Another."],
        grid=[
            {"steps": {"steps": [2, 3], "spacing": ["uniform"]}},
            {"searched_grid": {"evaluations": [2, 3], "passes": [1]}},
        ],
    )
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


def test_the_shipped_study_is_read() -> None:
    from paretone.paths import resource
    from paretone.studies.definition import read

    shipped = read(resource("studies", "f5-mini-grids.toml"))
    assert {one.unprepared for one in shipped.candidates} == {"", "searched_grid"}
    assert not shipped.ruled_out and len(shipped.calibration) == 2


def test_a_study_without_searched_grids_says_nothing_of_them(tmp_path: Path) -> None:
    assert finished(tmp_path / "s", study(sentences=["One sentence."])) == FINISHED
    with Store(tmp_path / "s") as store:
        assert hooks.files(store) == {}


def test_kinds_of_grids() -> None:
    def of(*techniques: UsedTechnique, model: str = "f5-mini", **options: object) -> Placed | None:
        return placed_of(Setting(model, Values(options), techniques))

    assert of(steps=7) == Placed("EPSS", "Euler", 7)
    assert of(steps=7, spacing="uniform") == Placed("sway −1", "Euler", 7)
    assert of(steps=7, spacing="uniform", sway=0.0) == Placed("even", "Euler", 7)
    naturalness = UsedTechnique("searched_grid", Values(objective="naturalness", search="coordinate"))
    assert of(naturalness) == Placed("searched (coordinate by naturalness)", "Euler", 5)
    midpoint = UsedTechnique("multistep", Values(start="midpoint"))
    found = of(midpoint, steps=4)
    assert found is not None and found.evaluations == 5 and found.solver.startswith("Multistep solver (")
    assert of(UsedTechnique("precision")) is None, "more is decided"
    assert of(solver="midpoint") is None and of(model="lm-mini") is None
