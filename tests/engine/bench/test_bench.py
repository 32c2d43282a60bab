"""Reports and the registry of benches; rounds and sentences that fit into a time."""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from paretone import bench
from paretone.bench import budget, bundled
from paretone.bench.budget import Budget, Turns
from paretone.bench.report import Report, table
from paretone.errors import SettingError
from paretone.models.catalogue import harvard_sentences, unseen_sentences
from paretone.wording import Share
from tests.engine import speaking
from tests.engine.recorder import Clock
from tests.engine.small_language import write_model
from tests.peers.__main__ import PEERS

REPORT = Report(
    "addition",
    2.5,
    (2.4, 2.625),
    "How many times faster adding is than counting.",
    ({"numbers": 10, "way": "count", "seconds": 0.25}, {"numbers": 1000, "way": "add", "seconds": None}),
    {"processor": "abacus", "graphics": [], "cores": 1},
)


def test_a_report_as_json_and_as_text() -> None:
    data = json.loads(REPORT.to_json())
    assert list(data) == ["bench", "headline", "interval", "verdict", "definition", "rows", "machine"]
    assert (data["headline"], data["interval"]) == (2.5, [2.4, 2.625])
    assert data["rows"][1] == {"numbers": 1000, "way": "add", "seconds": None}
    assert data["machine"] == {"processor": "abacus", "graphics": [], "cores": 1}
    assert REPORT.to_text().splitlines() == [
        "addition: 2.5 (95 % interval 2.4 to 2.62)",
        "How many times faster adding is than counting.",
        "",
        "numbers  way    seconds",
        "-------  -----  -------",
        "     10  count     0.25",
        "   1000  add          -",
        "",
        "Machine: processor abacus, cores 1",
    ]
    with pytest.raises(ValueError, match="no finite headline"):
        Report("addition", math.nan, (1.0, 2.0), "", (), {})


def test_a_table_of_uneven_rows_and_one_that_fits_a_width() -> None:
    """Words stay whole, and a row's cells are next to each other."""
    rows = [{"knob": "steps:steps", "meaning": "Number of steps from noise to speech", "default": 7}]
    assert len(table(rows)) == 3, "no terminal"
    assert table(rows, 40) == [
        "knob         meaning             default",
        "-----------  ------------------  -------",
        "steps:steps  Number of steps           7",
        "             from noise to",
        "             speech",
    ]
    kept = {"way": "steps", "spread kept": [Share(0.853), Share(0.7), None], "rate": Share(0.0), "low": 0.02}
    assert table([kept])[2].split() == "steps 85.3 %, 70.0 %, - 0 % 0.02".split()
    assert table(rows, 5)[2].split() == ["steps:steps", "Number", "7"]
    assert table([{"a": 1}, {"b": "two"}]) == ["a  b", "-  ---", "1", "   two"] and table([]) == []


def test_a_bench_that_is_unknown_or_has_moved_says_so() -> None:
    for name in bench.MOVED:
        command = "python -m tests.peers" + ("" if name == "peers" else f" {name}")
        with pytest.raises(SettingError, match=rf"{name}.*run {command} from its root"):
            bench.main([name])
        assert name not in bench.benches() and (name in PEERS or name == "peers")
    with pytest.raises(SettingError, match="no bench named 'guessing'; known benches: skipping"):
        bench.main(["guessing"])


@pytest.mark.parametrize(("given", "said"), [("1", "1 round cannot"), ("-3", "-3 rounds")])
def test_too_few_rounds_are_refused_before_anything_is_loaded(given: str, said: str) -> None:
    for name in ("omnivoice", "skipping", "ssd"):
        with pytest.raises(SettingError, match=f"^{said}.* give --rounds 2 or more"):
            bench.main([name, "--rounds", given])


def test_bench_runs_with_its_own_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(bench.BENCHES, "counting", "tests.engine.bench.counting")
    assert bench.main(["counting", "--upto", "4", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["headline"] == len(data["rows"]) == 4
    assert bench.main(["counting"]) == 0
    assert capsys.readouterr().out.startswith("counting: 2 ")


def test_shipped_benches_are_listed_without_torch() -> None:
    code = "import sys, paretone.bench; paretone.bench.main([]); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert list(lines) == list(bench.benches()) and all(line.endswith(".") for line in lines.values())


def test_benches_of_flow_models_refuse_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "load_model", lambda *given, **named: speaking.load(write_model(tmp_path / "model")))
    with pytest.raises(SettingError, match="is not a flow model"):
        bundled.loaded_flow(argparse.Namespace(model="lm-mini", device="cpu"))


@pytest.mark.parametrize(("minutes", "seconds", "expected"), [(10, 1.0, 9), (10, 99.0, 6), (10, 500.0, 2), (0, 1.0, 2)])
def test_as_many_rounds_as_fit_but_two_at_least(minutes: float, seconds: float, expected: int) -> None:
    assert Budget(minutes, most=9).rounds(seconds) == expected


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(budget.time, "monotonic", found)
    return found


def taken(turns: Turns, clock: Clock, seconds: float, most: int = 99) -> int:
    """How many sentences of ``seconds`` each are spoken."""
    for number in range(most):
        if not turns.another():
            return number
        clock.now += seconds
    return most


@pytest.mark.parametrize(("seconds", "expected"), [(10.0, 6), (17.0, 3), (31.0, 1), (90.0, 1)])
def test_another_sentence_is_begun_only_if_it_will_end_in_time(clock: Clock, seconds: float, expected: int) -> None:
    assert taken(Turns(Budget(1, most=2), least=1), clock, seconds) == expected
    assert clock.now <= max(60, seconds)
    assert taken(Turns(Budget(1, most=2), least=2), clock, 45.0) == 2, "the fewest, however long they take"


def test_the_longest_sentence_so_far_decides(clock: Clock) -> None:
    turns = Turns(Budget(1, most=2), least=1)
    lengths = iter((5.0, 25.0, 10.0, 5.0))
    count = 0
    while turns.another():
        clock.now += next(lengths)
        count += 1
    assert count == 3, "after the third 20 seconds are left, and one took 25"


def test_a_share_of_the_time_is_left_for_what_comes_after(clock: Clock) -> None:
    within = Budget(1, most=2)
    clock.now = 20.0
    assert taken(Turns(within, least=1, share=0.5), clock, 6.0) == 3
    assert within.part(0.25).left == pytest.approx(0.25 * within.left)
    assert Budget(10, most=9).rounds(99.0, share=0.5) == 3


def test_what_was_heard_is_said_and_whether_it_was_all() -> None:
    whole = budget.heard(30, 30, "in 5 voices in turn", 3)
    assert whole == "The judges heard 30 sentences in 5 voices in turn, 3 takes of each."
    few = budget.heard(1, 30, "in each of 2 voices")
    assert "heard 1 sentence in each of 2 voices, as many of 30 as fit into the time" in few and "--minutes" in few


def test_no_sentence_is_heard_that_something_was_prepared_on() -> None:
    arguments = argparse.Namespace(sentences=30)
    assert bundled.heard_sentences(arguments) == list(harvard_sentences())
    held_out = bundled.heard_sentences(arguments, [bundled.SENTENCE])
    assert bundled.SENTENCE in harvard_sentences() and bundled.SENTENCE not in held_out
    assert len(held_out) == 30 and held_out[-1] == unseen_sentences()[0], "another takes its place"


def test_rounds_that_fit_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    variants = {name: lambda name=name: done.append(name) for name in ("one", "two")}
    arguments = argparse.Namespace(rounds=4)
    times = bundled.timed(variants, "cpu", arguments, budget=Budget(1, most=4), share=0.5)
    assert len(times.seconds["two"]) == 4 and done[:2] == ["one", "two"], "each is warm"
    times = bundled.timed(variants, "cpu", arguments, budget=Budget(1e-9, most=4))
    assert len(times.seconds["two"]) == 2, "two at least"
