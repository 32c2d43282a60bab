"""Our Qwen3-TTS against the official talker and predictor, in the package's environment."""

import json

import pytest

from tests import official
from tests.peers.__main__ import main
from tests.peers.official import QWEN3_TTS


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_bench_compares_equal_codes(capsys: pytest.CaptureFixture[str]) -> None:
    official.python(QWEN3_TTS)
    options = ["--device", "cpu", "--layers", "1", "--tokens", "4", "--rounds", "2", "--minutes", "0.001"]
    assert main(["qwen3-tts", "--json", *options]) == 0
    ways = {row["way"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert ways["ours"]["tokens equal"] == "4 of 4" and ways["ours"]["codes equal"] == "48 of 48"
    assert "speed-up" in ways["official, again (A/A)"]
