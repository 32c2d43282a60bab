"""Our F5 against the official package's, in its environment."""

import json

import pytest

from paretone.models.kernels import split_products
from tests import official
from tests.peers.__main__ import main


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_bench_compares_equal_mels(capsys: pytest.CaptureFixture[str]) -> None:
    official.python()
    options = ["--device", "cpu", "--layers", "1", "--frames", "70", "--steps", "2", "--rounds", "2"]
    assert main(["f5", "--json", *options, "--plain-products"]) == 0
    report = json.loads(capsys.readouterr().out)
    low, high = report["interval"]
    assert low <= report["headline"] <= high
    assert "the target of 1.15×" in report["definition"]
    assert "GFLOP/s that this processor reached at best." in report["definition"]
    ways = {(row.get("model"), row.get("way")): row for row in report["rows"]}
    for model in ("F5TTS_v1_Base", "f5-mini"):
        assert ways[model, "ours"]["largest difference"] < 1e-4
        assert ways[model, "ours"]["speed-up"] > 0
        assert ways[model, "ours"]["rounds"] == 2
        assert "speed-up" in ways[model, "official, again (A/A)"]
    assert (("F5TTS_v1_Base", "ours, plain products") in ways) == split_products.in_use()
    if split_products.in_use():
        assert ways["F5TTS_v1_Base", "ours"]["products"] == "float32 from 8-bit whole numbers"
        assert ways["F5TTS_v1_Base", "ours, plain products"]["products"] == "float32, packed"
        assert ways["F5TTS_v1_Base", "ours, plain products"]["largest difference"] < 1e-4
    limit = ways["F5TTS_v1_Base", "ours: processor's limit"]
    assert 0 < limit["share of its time"] < 1
    assert limit["reached (GFLOP/s)"] > 0 and limit["best here (GFLOP/s)"] > 0
