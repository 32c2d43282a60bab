from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.errors import Cancelled
from paretone.measure.evaluation import judges
from paretone.measure.evaluation.judging import judged_figures
from tests.engine.measure.evaluation.natural import RATE, speech


@pytest.mark.skipif(
    not all(find_spec(one) for one in ("distillmos", "resemblyzer")), reason="the judges' weights are not installed"
)
def test_a_take_gets_all_figures(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.wav"
    soundfile.write(prompt, speech(), RATE, subtype="FLOAT")
    found = judged_figures(speech(), RATE, str(prompt))
    assert 3.5 < found["naturalness"] < 5
    assert found["voice_similarity"] == pytest.approx(1.0, abs=1e-3)
    assert 0.02 < found["pitch_range"] < 0.4
    assert judged_figures(np.zeros(RATE, np.float32), RATE, str(prompt)) == {}
    assert set(judged_figures(speech(), RATE, str(tmp_path / "gone.wav"))) == {"naturalness", "pitch_range"}


def test_without_the_weights_there_is_the_rest_and_all_once_they_are_installed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judges, "find_spec", lambda name: None)
        assert set(judged_figures(speech(), RATE)) == {"pitch_range"}
    assert set(judged_figures(speech(), RATE)) == {"naturalness", "pitch_range"}


def test_it_can_be_cancelled() -> None:
    def check() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        judged_figures(speech(), RATE, check=check)
