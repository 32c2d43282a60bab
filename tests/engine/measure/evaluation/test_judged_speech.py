from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.errors import AudioError, Cancelled
from paretone.measure.evaluation import judges
from paretone.measure.evaluation.judges import MARGIN_SECONDS, RATE, speech_in
from paretone.measure.evaluation.judging import judged_figures
from tests.engine.measure.evaluation import natural
from tests.engine.measure.evaluation.natural import speech
from tests.engine.recorder import Follower

OTHER_RATE = 24_000


def tone(seconds: float = 1.0, rate: int = OTHER_RATE) -> np.ndarray:
    return (0.1 * np.sin(2 * np.pi * 200 * np.arange(round(seconds * rate)) / rate + 0.1)).astype(np.float32)


def test_silence_at_the_ends_changes_nothing() -> None:
    plain = speech_in(tone(), OTHER_RATE)
    # Whole samples of both rates, so that the conversion meets the same places.
    around = np.concatenate([np.zeros(3 * 1001, np.float32), tone(), np.zeros(OTHER_RATE, np.float32)])
    np.testing.assert_allclose(speech_in(around, OTHER_RATE), plain, atol=1e-6)
    assert len(plain) == pytest.approx((1.0 + 2 * MARGIN_SECONDS) * RATE, abs=20)


def test_a_noise_floor_below_a_hundredth_is_silence() -> None:
    floor = 5e-4 * np.random.default_rng(0).uniform(-1, 1, OTHER_RATE).astype(np.float32)
    assert len(speech_in(np.concatenate([floor, tone(), floor]), OTHER_RATE)) == len(speech_in(tone(), OTHER_RATE))


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        (np.zeros(0), "is empty"),
        (np.zeros(OTHER_RATE), "is silent"),
        (tone(0.1), r"has 0\.10 s of speech; judging takes at least 0\.4 s"),
        (np.r_[np.zeros(OTHER_RATE), 1.0, np.zeros(OTHER_RATE)], r"has 0\.00 s of speech"),
        (np.r_[tone(), np.nan], "values that are not numbers"),
        (np.r_[tone(), np.inf], "values that are not numbers"),
    ],
)
def test_what_is_no_speech_is_refused(samples: np.ndarray, sentence: str) -> None:
    with pytest.raises(AudioError, match=sentence):
        speech_in(samples, OTHER_RATE)


@pytest.mark.skipif(
    not all(find_spec(one) for one in ("distillmos", "resemblyzer")), reason="the judges' weights are not installed"
)
def test_a_take_gets_all_figures(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.wav"
    soundfile.write(prompt, speech(), natural.RATE, subtype="FLOAT")
    found = judged_figures(speech(), natural.RATE, str(prompt))
    assert 3.5 < found["naturalness"] < 5
    assert found["voice_similarity"] == pytest.approx(1.0, abs=1e-3)
    assert 0.02 < found["pitch_range"] < 0.4
    assert judged_figures(np.zeros(natural.RATE, np.float32), natural.RATE, str(prompt)) == {}
    assert set(judged_figures(speech(), natural.RATE, str(tmp_path / "gone.wav"))) == {"naturalness", "pitch_range"}


def test_without_the_weights_there_is_the_rest_and_all_once_they_are_installed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judges, "find_spec", lambda name: None)
        assert set(judged_figures(speech(), natural.RATE)) == {"pitch_range"}
    assert set(judged_figures(speech(), natural.RATE)) == {"naturalness", "pitch_range"}


def test_it_can_be_cancelled() -> None:
    with pytest.raises(Cancelled):
        judged_figures(speech(), natural.RATE, check=Follower(cancel_at=1).check)
