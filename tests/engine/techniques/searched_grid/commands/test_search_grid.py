"""``paretone search-grid``: files, figures, what is refused; other commands take the files."""

from __future__ import annotations

import dataclasses
import io
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from paretone import models
from paretone.commands.terminal import Terminal
from paretone.models.f5.adapter import F5Speech
from paretone.sampling.grid_search import Trial
from paretone.session.events import PreparationReport, Progress
from paretone.setting.profile import Profile
from paretone.techniques.searched_grid import PlacedGrid
from paretone.techniques.searched_grid.command import _Trials
from tests.engine.command_line import Outcome, runner
from tests.engine.studies import small
from tests.engine.techniques.searched_grid.grids import NAME

Run = Callable[..., Outcome]
SEARCH = ("--passes", 1, "--text", "One.", "--sway", 0, "--json", "--quiet")


def load(model: str, **given: object) -> F5Speech:
    """The small model under the name of the bundled one."""
    speech = small.load(model, **given)
    speech.info = dataclasses.replace(speech.info, id=model)
    return speech


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(models, "load_model", load)
    return runner(capsys)


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


def test_its_table_says_where_the_times_are(run: Run, tmp_path: Path) -> None:
    found = run("search-grid", "--evaluations", 2, "--grid", tmp_path / "g.json", *SEARCH[:-2])
    assert found.code == 0, found.err
    assert "lower is nearer" in found.out and "0.000 " in found.out and "Wrote the grid to" in found.out
    assert "Pass 1, time 1 of 1" in found.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--evaluations", 4), "give --grid or --profile"),
        (("--evaluations", 4, 4, "--grid", "g.json"), "has a number twice"),
        (("--evaluations", 13, "--grid", "g.json"), "Evaluations must lie between 2 and 12"),
    ],
)
def test_what_is_refused(run: Run, arguments: tuple, said: str) -> None:
    found = run("search-grid", *arguments)
    assert found.code and said in found.err


def test_files_that_are_no_grid_are_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "grid.json"
    for content, said in ((None, "could not be read"), ("{", "it is not JSON"), ("{}", "lacks the field")):
        if content is not None:
            path.write_text(content)
        found = run("speak", "--grid", path, "--text", "One.", "--out", tmp_path / "o.wav")
        assert found.code and said in found.err


def test_the_best_so_far_is_shown() -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Screen()
    hear = _Trials(Terminal(threading.Event(), stream=stream), "naturalness")
    for value, best in ((-3.9, True), (-2.0, False)):
        hear(PreparationReport(1, NAME, Trial(1, 1, (0.0, 0.5, 1.0), (value,), best)))
    hear(Progress(1, 1, 2, None, ""))
    assert "best so far 3.9" in stream.getvalue()


def test_what_cannot_be_measured_is_no_number(run: Run, tmp_path: Path) -> None:
    """The small model has no pitch, and JSON knows no infinity."""
    given = ("--evaluations", 2, "--objective", "pitch_error", "--grid", tmp_path / "grid.json")
    found = run("search-grid", *given, *SEARCH)
    assert found.code == 0, found.err
    (one,) = found.data["searches"]
    assert one["value"] is None and {start["value"] for start in one["starts"]} == {None}
    assert one["unit"].startswith("F0 error")
    shown = run("search-grid", *given, *SEARCH[:-2], "--quiet", "--restart")
    assert shown.code == 0 and " inf" not in shown.out
