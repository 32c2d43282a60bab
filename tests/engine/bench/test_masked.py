"""The benches of masked models, on a small one: what they compare, and that their figures agree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from engine import bench, cli
from engine.bench import official_masked
from engine.models.bidirectional import Qwen3Config
from engine.models.masked_network import MaskedConfig
from tests.engine.small_omni_mini import write_model

pytest.importorskip("transformers")
SMALL = MaskedConfig(Qwen3Config(32, 2, 4, 2, 16, 48, 1e-6, 1e6), 64, 4, 33)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in ("omnivoice", "omnivoice_exact"):
        monkeypatch.setattr(f"engine.bench.{module}.FULL_SIZE", SMALL)
    return write_model(tmp_path / "model")


def report_of(root: Path, name: str, *more: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict, dict[str, list]]:
    command = ["bench", name, "--folder", str(root), "--device", "cpu", "--rounds", "2", "--steps", "4", "--json"]
    assert cli.main([*command, *more]) == 0
    report = json.loads(capsys.readouterr().out)
    rows: dict[str, list] = {}
    for row in report["rows"]:
        rows.setdefault(row["way"], []).append(row)
    return report, rows


def test_exact_savings_leave_every_code(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, rows = report_of(root, "omnivoice-exact", "--full-rounds", "1", capsys=capsys)
    ways = [official_masked.OFFICIAL, official_masked.OWN_LAYERS, official_masked.UNPADDED, official_masked.EXACT]
    assert list(rows) == ways
    for mini, full in rows.values():
        equal, cells = mini["codes equal"].split(" of ")
        assert equal == cells
        assert full["largest difference"] < 1e-3
    assert report["headline"] == rows[official_masked.EXACT][0]["speed-up"]


def test_first_audio_beside_the_whole(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--sentences", "0", "--first-block", "8", "--block", "8", "--first-steps", "2", "--later-steps", "2")
    report, rows = report_of(root, "omnivoice-first-audio", *more, capsys=capsys)
    assert list(rows) == ["whole canvas", "sentence by sentence", "blockwise"]
    (blocks,) = rows["blockwise"]
    assert blocks["first audio p50 (s)"] < blocks["whole p50 (s)"]
    assert 0 <= blocks["playback waits p50 (s)"] <= blocks["longest (s)"] <= blocks["longest gap (s)"] * 100
    assert rows["whole canvas"][0]["takes that wait"] == "0 of 2"
    assert report["headline"] > 0


@pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")
@pytest.mark.parametrize("name", ["omnivoice", "omnivoice-first-audio"])
def test_quality_stands_beside_speed(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("jiwer")
    more = ("--sentences", "2") if name == "omnivoice-first-audio" else ("--quick", "--full-rows", "5", "6", "7")
    _, rows = report_of(root, name, *more, capsys=capsys)
    (original,) = rows["original speech"]
    assert original["word error rate"] < 0.2
    assert "codes equal" not in original
    # The two shipped voices can be told from one another.
    assert 3 < original["timbre to the other voice (dB)"] < 8
    plain = rows[official_masked.EXACT if name == "omnivoice" else "whole canvas"][-1]
    assert (plain["codes equal"], plain["first codes equal"], plain["timbre to the plain way (dB)"]) == (1, 1, 0)
    # What a small random model says is noise in any way.
    assert plain["word error rate"] > 0.5
    blocks = rows["exact, blockwise" if name == "omnivoice" else "blockwise"][0]
    assert 0 < blocks["codes equal"] < 1
    assert blocks["timbre to the voice (dB)"] > 0
    assert blocks["errors"].endswith(original["errors"].split(" of ")[1])


def test_techniques_are_added_one_by_one(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--full-rounds", "1", "--full-rows", "5", "6", "7", "--generations", "4", "--sentences", "0")
    _, rows = report_of(root, "omnivoice", *more, capsys=capsys)
    full, mini = rows[official_masked.OFFICIAL]
    assert full["speed-up"] == mini["speed-up"] == 1
    exact_full, exact = rows[official_masked.EXACT]
    assert exact_full["largest difference"] < 1e-3
    assert exact["launches a forward"] < mini["launches a forward"]
    assert exact_full["launches a forward"] < full["launches a forward"]
    assert {"exact, 2 steps", "exact, blockwise", "exact, sentence by sentence"} <= rows.keys()
    (memory,) = (one for name, (one, *_) in rows.items() if "generations of different lengths" in name)
    assert memory["peak after 4 (MB)"] > 0
    assert memory["grown since (MB)"] == 0


@pytest.mark.parametrize("name", ["omnivoice", "omnivoice-exact", "omnivoice-first-audio"])
def test_they_are_listed(name: str) -> None:
    assert bench.summary(name)


def test_other_families_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "omnivoice-exact", "--model", "f5-mini", "--device", "cpu"]) != 0
    assert "F5 mini is no masked model" in capsys.readouterr().err
