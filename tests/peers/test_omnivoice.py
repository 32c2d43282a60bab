"""Our OmniVoice against the official package's loop, in its environment."""

import json

import pytest

from tests import official
from tests.peers.__main__ import main
from tests.peers.official import OMNIVOICE

pytest.importorskip("transformers")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_bench_compares_equal_codes(capsys: pytest.CaptureFixture[str]) -> None:
    official.python(OMNIVOICE)
    options = ["--device", "cpu", "--layers", "1", "--frames", "9", "--steps", "3", "--minutes", "0.001"]
    assert main(["omnivoice", "--json", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    ways = {row["way"]: row for row in report["rows"]}
    assert ways["ours"]["codes equal"] == "72 of 72"
    assert ways["ours"]["largest difference"] < 1e-3
    assert "speed-up" in ways["official, again (A/A)"]
    assert ways["ours: processor's limit"]["reached (GFLOP/s)"] > 0
    assert "the target of 1.15×" in report["definition"]
