"""The command line with the masked model: it speaks with its own options, and refuses what is not for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile

from paretone.models import load_model
from paretone.models.minis.omni_mini import OmniMiniSpeech
from tests.engine.small_omni_mini import write_model

SPEAK = ("speak", "--model", "omni-mini", "--text", "Rice is often served. The box was thrown.", "--speed", "2")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OmniMiniSpeech:
    root = write_model(tmp_path_factory.mktemp("masked") / "model")
    return load_model("omni-mini", folder=str(root), device="cpu")


def test_speaking(paretone: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    out = tmp_path / "speech.wav"
    code, said, _ = paretone(*SPEAK, "--steps", "5", "--by-sentence", "--out", out, "--json")
    assert code == 0
    data = json.loads(said)
    assert data["setting"]["options"]["steps"] == 5
    assert data["setting"]["options"]["position_temperature"] == 2.5
    assert data["evaluations"] == 10
    assert soundfile.info(out).frames == data["samples"]


def test_options_of_other_families_are_refused(paretone: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, _, said = paretone(*SPEAK, "--top-k", "5", "--out", tmp_path / "speech.wav")
    assert code == 2
    assert "top_k" in said or "top-k" in said
