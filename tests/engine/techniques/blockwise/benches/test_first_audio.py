"""The bench of first audio, on a small model: what is compared, and that its figures agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.bench.test_masked import report_of
from tests.engine.small_omni_mini import write_model


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def test_first_audio_against_the_whole(root: Path) -> None:
    more = ("--sentences", "0", "--first-block", "8", "--block", "8", "--first-steps", "2", "--later-steps", "2")
    report, rows = report_of(root, "omnivoice-first-audio", *more)
    exactly = "blockwise, text and reference at every step"
    assert list(rows) == ["whole canvas", "sentence by sentence", "blockwise", exactly]
    (blocks,) = rows["blockwise"]
    assert blocks["first audio p50 (s)"] < blocks["whole p50 (s)"]
    assert 0 <= blocks["playback waits p50 (s)"] <= blocks["longest (s)"]
    assert rows["whole canvas"][0]["takes that wait"] == "0 of 2"
    assert report["headline"] > 0
