"""The bench of a study's driver: real queue and store, simulated workers."""

import json
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from paretone.observer import Observer
from paretone.studies.running import FINISHED, WorkerLost, run
from paretone.studies.study import Outcome
from tests.peers.__main__ import main
from tests.peers.study_scale import Growth, SimulatedWorkers, TimedStore, simulated_study


def test_every_take_is_made_once_by_many_workers(tmp_path: Path) -> None:
    study = simulated_study(settings=12, sentences=3)
    assert (len(study.candidates), study.takes) == (12, 36)
    workers = Busy(16, samples=24)
    follower = Growth(study.takes, workers)
    with TimedStore(tmp_path) as store:
        store.begin(study)
        follower.watch(store)
        assert run(study, store, workers, follower) == FINISHED
        assert {one.cell for one in store.takes()} == {cell for one in study.candidates for cell in study.cells(one)}
    assert max(workers.at_once) > 3, "takes of several sentences are under way at once"
    assert sum(one.takes for one in follower.parts) == follower.parts[-1].upto == 36
    assert len(follower.parts) == 10
    assert all(0 < one.storing < one.seconds and one.resident > 0 for one in follower.parts)


class Busy(SimulatedWorkers):
    """Counts how many work at once."""

    def __init__(self, count: int, samples: int) -> None:
        super().__init__(count, samples)
        self.at_once: Counter[int] = Counter()

    def wait(self, observer: Observer) -> list[tuple[object, Outcome | WorkerLost]]:
        self.at_once[len(self._busy)] += 1
        for _, _, task in self._busy:
            # What a worker compares with comes with its task; a baseline has nothing.
            alone = task.cell.setting == task.setting.bare.baseline.fingerprint
            assert (task.baseline is None) == alone
        return super().wait(observer)


def test_the_report_has_the_growth_and_draws_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = ["--settings", "10", "--sentences", "2", "--workers", "4", "--samples", "24", "--json"]
    assert main(["study-scale", *given, "--picture", str(tmp_path / "growth.svg")]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["headline"] > 0
    assert [one["takes"] for one in data["rows"]] == list(range(2, 21, 2))
    for one in data["rows"]:
        assert one["ms per take"] == pytest.approx(one["of that storing"] + one["scheduling"])
    drawn = ElementTree.fromstring((tmp_path / "growth.svg").read_text())
    space = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f".//{space}polyline")) == 4, "whole, scheduling, storing; memory"
    tips = [one.text for one in drawn.iter(f"{space}title")]
    assert len(tips) == 40 and f"memory (MB), 20 takes: {data['rows'][-1]['memory (MB)']:.3g}" in tips
    assert "20 takes, 4 workers" in [one.text for one in drawn.iter(f"{space}text")]
    points = drawn.find(f".//{space}polyline").get("points").split()
    across = [float(one.partition(",")[0]) for one in points]
    assert np.ptp(np.diff(across)) < 0.3, "linear, so that steady growth is a straight line"


def test_where_the_picture_cannot_be_written_is_said_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["study-scale", "--picture", str(tmp_path / "none" / "growth.svg")]) == 1
    said = capsys.readouterr().err
    assert "does not exist; create it or choose another" in said and "simulated workers" not in said


@pytest.mark.parametrize(("option", "wrong"), [("--settings", "1"), ("--workers", "0"), ("--sentences", "0")])
def test_sizes_that_are_none_are_refused(option: str, wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study-scale", option, wrong]) == 2
    assert f"argument {option}: must be a whole number from" in capsys.readouterr().err
