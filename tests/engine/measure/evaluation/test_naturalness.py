"""Whether predicted naturalness orders what everybody hears, and voice similarity tells voices apart."""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.errors import AudioError, Cancelled, CheckpointError
from paretone.measure.evaluation import naturalness, speakers
from paretone.measure.evaluation.naturalness import FURTHEST, LENGTH, MOST_WINDOWS, NaturalnessJudge, windows
from paretone.measure.evaluation.speakers import VoiceJudge
from paretone.models.base import Voice
from paretone.observer import stoppable
from tests.engine.measure.evaluation.natural import RATE, TEXT, muffled, noisy, speech, with_dropouts
from tests.engine.recorder import Follower


@pytest.fixture(scope="module")
def judge() -> NaturalnessJudge:
    pytest.importorskip("hibari")
    if find_spec(naturalness.PACKAGE) is None:
        pytest.skip(f"{naturalness.PACKAGE} is not installed")
    return naturalness.load((), Path(), "cpu")


@pytest.fixture(scope="module")
def clean(judge: NaturalnessJudge) -> float:
    return judge.naturalness(speech(), RATE)


def test_natural_speech_scores_high(clean: float) -> None:
    assert 4.0 < clean < 5.0


@pytest.mark.parametrize("harm", [muffled, with_dropouts])
def test_known_degradations_score_lower(judge: NaturalnessJudge, clean: float, harm) -> None:
    assert judge.naturalness(harm(speech()), RATE) < clean - 0.5


def test_more_noise_scores_lower(judge: NaturalnessJudge, clean: float) -> None:
    some, more = (judge.naturalness(noisy(speech(), decibels), RATE) for decibels in (25.0, 5.0))
    assert more < some < clean


def test_level_and_silence_at_the_ends_change_nothing(judge: NaturalnessJudge, clean: float) -> None:
    assert judge.naturalness(0.02 * speech(), RATE) == pytest.approx(clean, abs=0.005)
    around = np.concatenate([np.zeros(RATE, np.float32), speech(), np.zeros(RATE // 3, np.float32)])
    assert judge.naturalness(around, RATE) == pytest.approx(clean, abs=0.02)


def test_windows_cover_a_recording_from_end_to_end() -> None:
    samples = np.arange(LENGTH + 5 * FURTHEST // 2, dtype=np.float32)
    found = windows(samples)
    assert len(found) == 4
    assert (found[0, 0], found[-1, -1]) == (0, samples[-1])
    assert np.diff(found[:, 0]).max() <= FURTHEST
    assert len(windows(np.zeros(100 * LENGTH, np.float32))) == MOST_WINDOWS
    short = windows(np.ones(100, np.float32))
    assert short.shape == (1, LENGTH) and short.sum() == 100


def test_judging_can_be_cancelled_between_windows(judge: NaturalnessJudge) -> None:
    with pytest.raises(Cancelled), stoppable(Follower(cancel_at=2).check):
        judge.score(np.zeros(10 * LENGTH, np.float32))


def test_other_weights_are_refused(tmp_path: Path) -> None:
    torch.save({"step": 1}, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="holds no weights of DistillMOS"):
        naturalness.read_network(tmp_path / "other.pt")
    torch.save({"model": {"cnn.cnn.0.weight": torch.zeros(64, 2, 3, 3)}}, tmp_path / "part.pt")
    with pytest.raises(CheckpointError):
        naturalness.read_network(tmp_path / "part.pt")


def test_no_code_of_the_package_is_imported(judge: NaturalnessJudge) -> None:
    assert not {"distillmos", "xls_r_sqa", "torchaudio"} & set(sys.modules)


# --- Voice similarity -------------------------------------------------------------------------------------------------
OTHER_TEXT = "Four hours of steady work faced us, and nobody complained."


@pytest.fixture(scope="module")
def voice_judge() -> VoiceJudge:
    pytest.importorskip("hibari")
    if find_spec(speakers.PACKAGE) is None:
        pytest.skip(f"{speakers.PACKAGE} is not installed")
    return speakers.load((), Path(), "cpu")


def test_one_voice_is_more_alike_than_two(voice_judge: VoiceJudge) -> None:
    mine = voice_judge.voice_of(speech(), RATE)
    same = voice_judge.voice_of(speech(OTHER_TEXT), RATE)
    other = voice_judge.voice_of(speech(OTHER_TEXT, 0.85, 0.93), RATE)
    assert np.linalg.norm(mine) == pytest.approx(1.0, abs=1e-5)
    assert voice_judge.similarity(mine, mine) == pytest.approx(1.0, abs=1e-5)
    assert voice_judge.similarity(mine, same) > voice_judge.similarity(mine, other) + 0.05


def test_a_voice_stays_the_same_at_another_level_and_between_silences(voice_judge: VoiceJudge) -> None:
    mine = voice_judge.voice_of(speech(), RATE)
    assert voice_judge.similarity(mine, voice_judge.voice_of(0.02 * speech(), RATE)) > 0.9999
    around = np.concatenate([np.zeros(RATE, np.float32), speech(), np.zeros(RATE // 3, np.float32)])
    assert voice_judge.similarity(mine, voice_judge.voice_of(around, RATE)) > 0.999


def test_pauses_do_not_count(voice_judge: VoiceJudge) -> None:
    pause = np.zeros(RATE, np.float32)
    parted = np.concatenate([speech(), pause, speech()])
    joined = np.concatenate([speech(), pause[: RATE // 5], speech()])
    assert voice_judge.similarity(voice_judge.voice_of(parted, RATE), voice_judge.voice_of(joined, RATE)) > 0.99


def test_a_verdict_compares_with_the_voices_recording(voice_judge: VoiceJudge, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "prompt.wav", speech(OTHER_TEXT), RATE, subtype="FLOAT")
    verdict = voice_judge.hear(TEXT, Voice("own", "Own", str(tmp_path / "prompt.wav"), OTHER_TEXT), speech(), RATE)
    expected = voice_judge.similarity(*(voice_judge.voice_of(one, RATE) for one in (speech(OTHER_TEXT), speech())))
    assert verdict.judge == "voice"
    assert verdict.figures["voice_similarity"] == pytest.approx(expected, abs=1e-4)
    with pytest.raises(AudioError, match="There is no recording"):
        voice_judge.hear(TEXT, Voice("gone", "Gone", str(tmp_path / "gone.wav"), ""), speech(), RATE)


def test_other_weights_of_voices_are_refused(tmp_path: Path) -> None:
    torch.save({"step": 1}, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="holds no weights of Resemblyzer"):
        speakers.read_network(tmp_path / "other.pt")
