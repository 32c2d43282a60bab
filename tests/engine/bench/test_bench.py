"""Reports and the registry of benches."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from paretone import bench
from paretone.bench import bundled
from paretone.bench.report import Report, table
from paretone.errors import SettingError
from tests.engine import speaking
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


def test_json_has_exactly_the_agreed_keys() -> None:
    data = json.loads(REPORT.to_json())
    assert list(data) == ["bench", "headline", "interval", "verdict", "definition", "rows", "machine"]
    assert data["headline"] == 2.5
    assert data["interval"] == [2.4, 2.625]
    assert data["rows"][1] == {"numbers": 1000, "way": "add", "seconds": None}
    assert data["machine"] == {"processor": "abacus", "graphics": [], "cores": 1}


def test_text_shows_headline_rows_and_machine() -> None:
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


def test_table_of_uneven_rows() -> None:
    assert table([{"a": 1}, {"b": "two"}]) == ["a  b", "-  ---", "1", "   two"]
    assert table([]) == []


def test_headline_must_be_a_number() -> None:
    with pytest.raises(ValueError, match="no finite headline"):
        Report("addition", math.nan, (1.0, 2.0), "", (), {})


def test_unknown_bench_lists_the_known_ones() -> None:
    with pytest.raises(SettingError, match="no bench named 'guessing'; known benches: calibration, skipping"):
        bench.main(["guessing"])


def test_a_bench_that_has_moved_says_where_it_is() -> None:
    for name, command in bench.MOVED.items():
        with pytest.raises(SettingError, match=rf"{name}.*run {command} from its root"):
            bench.main([name])
        assert name not in bench.benches() and (name in PEERS or name == "peers")


@pytest.mark.parametrize(("given", "said"), [("1", "1 round cannot"), ("0", "0 rounds cannot"), ("-3", "-3 rounds")])
def test_too_few_rounds_are_refused_before_anything_is_loaded(given: str, said: str) -> None:
    for name in ("omnivoice-exact", "skipping", "ssd"):
        with pytest.raises(SettingError, match=f"^{said}.* give --rounds 2 or more"):
            bench.main([name, "--rounds", given])


def test_bench_runs_with_its_own_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(bench.BENCHES, "counting", "tests.engine.bench.counting")
    assert bench.main(["counting", "--upto", "4", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["headline"] == 4
    assert len(data["rows"]) == 4
    assert bench.main(["counting"]) == 0
    assert capsys.readouterr().out.startswith("counting: 2 ")


def test_list_names_every_bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench, "benches", lambda: {"counting": "tests.engine.bench.counting"})
    assert bench.main([]) == 0
    assert capsys.readouterr().out == "counting  Counts, to show what a bench looks like.\n"


def test_shipped_benches_are_listed_without_torch() -> None:
    code = "import sys, paretone.bench; paretone.bench.main([]); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert list(lines) == list(bench.benches())
    assert all(line.endswith(".") for line in lines.values())


def test_benches_of_flow_models_refuse_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "load_model", lambda *given, **named: speaking.load(write_model(tmp_path / "model")))
    with pytest.raises(SettingError, match="is not a flow model"):
        bundled.loaded_flow(argparse.Namespace(model="lm-mini", device="cpu"))
