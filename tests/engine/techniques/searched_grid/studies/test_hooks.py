"""Studies search the grids of their settings, and compare them with others at equal evaluations."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.studies.running import FINISHED
from engine.studies.store import Store
from engine.techniques.searched_grid.grid import PlacedGrid
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
        takes, grids = list(store.takes()), store.artefacts()
    found = [one for one in grids.values() if isinstance(one, PlacedGrid)]
    assert sorted(one.steps for one in found) == [2, 3]
    assert len(takes) == 5 and max(follower.shares) == 1.0


def test_the_shipped_study_is_read() -> None:
    from engine.paths import resource
    from engine.studies.definition import read

    shipped = read(resource("studies", "f5-mini-grids.toml"))
    assert {one.unprepared for one in shipped.candidates} == {"", "searched_grid"}
    assert not shipped.ruled_out and len(shipped.calibration) == 2
