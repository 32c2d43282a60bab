"""Making the files of the text front end; what they hold is compared in ``tests/parity``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from paretone.training.natural_teacher import MISSING
from paretone.training.recipes.natural_front_end import main


def test_without_the_teacher_a_sentence_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "hibari", None)
    assert main(["--export", str(tmp_path)]) != 0
    assert MISSING in capsys.readouterr().err
