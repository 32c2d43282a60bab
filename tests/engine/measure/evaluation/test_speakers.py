"""Whether voice similarity tells voices apart, whatever they say and however loudly."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.errors import AudioError, CheckpointError
from paretone.measure.evaluation import speakers
from paretone.measure.evaluation.speakers import VoiceJudge
from paretone.models.base import Voice
from tests.engine.measure.evaluation.natural import RATE, TEXT, speech

OTHER_TEXT = "Four hours of steady work faced us, and nobody complained."


@pytest.fixture(scope="module")
def judge() -> VoiceJudge:
    pytest.importorskip("hibari")
    if find_spec(speakers.PACKAGE) is None:
        pytest.skip(f"{speakers.PACKAGE} is not installed")
    return speakers.load((), Path(), "cpu")


def test_one_voice_is_more_alike_than_two(judge: VoiceJudge) -> None:
    mine = judge.voice_of(speech(), RATE)
    same = judge.voice_of(speech(OTHER_TEXT), RATE)
    other = judge.voice_of(speech(OTHER_TEXT, 0.85, 0.93), RATE)
    assert np.linalg.norm(mine) == pytest.approx(1.0, abs=1e-5)
    assert judge.similarity(mine, mine) == pytest.approx(1.0, abs=1e-5)
    assert judge.similarity(mine, same) > judge.similarity(mine, other) + 0.05


def test_level_and_silence_at_the_ends_change_nothing(judge: VoiceJudge) -> None:
    mine = judge.voice_of(speech(), RATE)
    assert judge.similarity(mine, judge.voice_of(0.02 * speech(), RATE)) > 0.9999
    around = np.concatenate([np.zeros(RATE, np.float32), speech(), np.zeros(RATE // 3, np.float32)])
    assert judge.similarity(mine, judge.voice_of(around, RATE)) > 0.999


def test_pauses_do_not_count(judge: VoiceJudge) -> None:
    pause = np.zeros(RATE, np.float32)
    parted = np.concatenate([speech(), pause, speech()])
    joined = np.concatenate([speech(), pause[: RATE // 5], speech()])
    assert judge.similarity(judge.voice_of(parted, RATE), judge.voice_of(joined, RATE)) > 0.99


def test_a_verdict_compares_with_the_voices_recording(judge: VoiceJudge, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "prompt.wav", speech(OTHER_TEXT), RATE, subtype="FLOAT")
    voice = Voice("own", "Own", str(tmp_path / "prompt.wav"), OTHER_TEXT)
    verdict = judge.hear(TEXT, voice, speech(), RATE)
    expected = judge.similarity(judge.voice_of(speech(OTHER_TEXT), RATE), judge.voice_of(speech(), RATE))
    assert verdict.judge == "voice"
    assert verdict.figures["voice_similarity"] == pytest.approx(expected, abs=1e-4)
    with pytest.raises(AudioError, match="missing"):
        judge.hear(TEXT, Voice("gone", "Gone", str(tmp_path / "gone.wav"), ""), speech(), RATE)


def test_other_weights_are_refused(tmp_path: Path) -> None:
    torch.save({"step": 1}, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="holds no weights of Resemblyzer"):
        speakers.read_network(tmp_path / "other.pt")
