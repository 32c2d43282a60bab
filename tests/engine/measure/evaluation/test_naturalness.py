"""Whether predicted naturalness orders what everybody hears. One short clip, so that it takes a second a recording."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import Cancelled, CheckpointError
from paretone.measure.evaluation import naturalness
from paretone.measure.evaluation.naturalness import FURTHEST, LENGTH, MOST_WINDOWS, NaturalnessJudge, windows
from tests.engine.measure.evaluation.natural import RATE, muffled, noisy, speech, with_dropouts


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
    assert short.shape == (1, LENGTH)
    assert short.sum() == 100


def test_judging_can_be_cancelled_between_windows(judge: NaturalnessJudge) -> None:
    asked = []

    def check() -> None:
        asked.append(True)
        if len(asked) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        judge.score(np.zeros(10 * LENGTH, np.float32), check)


def test_other_weights_are_refused(tmp_path: Path) -> None:
    torch.save({"step": 1}, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="holds no weights of DistillMOS"):
        naturalness.read_network(tmp_path / "other.pt")
    torch.save({"model": {"cnn.cnn.0.weight": torch.zeros(64, 2, 3, 3)}}, tmp_path / "part.pt")
    with pytest.raises(CheckpointError):
        naturalness.read_network(tmp_path / "part.pt")


def test_no_code_of_the_package_is_imported(judge: NaturalnessJudge) -> None:
    assert not {"distillmos", "xls_r_sqa", "torchaudio"} & set(sys.modules)
