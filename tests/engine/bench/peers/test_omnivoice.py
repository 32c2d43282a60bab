"""Our OmniVoice against the official package's loop, in its environment."""

from __future__ import annotations

import json
import sys

import pytest
from filelock import FileLock

from engine import bench
from engine.bench import official
from tests.official import ROOT

FOLDER = ROOT / "runs" / "official" / f"omnivoice-{official.OMNIVOICE.version}"

pytest.importorskip("transformers")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_bench_compares_equal_codes(capsys: pytest.CaptureFixture[str]) -> None:
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(FOLDER.with_suffix(".lock")):
        try:
            official.environment(lambda line: print(line, file=sys.stderr), FOLDER, official.OMNIVOICE)
        except official.RegistryUnreachable as error:
            pytest.skip(str(error))
    options = ["--environment", str(FOLDER), "--device", "cpu", "--layers", "1", "--frames", "9", "--steps", "3"]
    assert bench.main(["peers", "--model", "omnivoice", "--json", *options, "--minutes", "0.001"]) == 0
    report = json.loads(capsys.readouterr().out)
    ways = {row["way"]: row for row in report["rows"]}
    assert ways["ours"]["codes equal"] == "72 of 72"
    assert ways["ours"]["largest difference"] < 1e-3
    assert "speed-up" in ways["official, again (A/A)"]
    assert ways["ours: processor's limit"]["reached (GFLOP/s)"] > 0
    assert "the target of 1.15×" in report["definition"]
