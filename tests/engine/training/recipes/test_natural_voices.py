from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.models.minis.natural_decoder import HOP, SAMPLE_RATE
from paretone.models.shipped_voices import INDEX, read_voice
from paretone.training.natural_corpus import FORMANTS, PITCHES
from paretone.training.recipes.natural_voices import SPEAKER, VOICES, export
from tests.engine.training.toy_natural import Hummer


def test_every_voice_has_a_recording_with_text_and_phones_to_its_end(tmp_path: Path):
    export(tmp_path, Hummer(frames=40))
    for one in VOICES:
        voice = read_voice(tmp_path, one.name)
        samples, rate = soundfile.read(voice.audio)
        assert rate == SAMPLE_RATE
        assert voice.phones[-1][2] == pytest.approx(len(samples) / SAMPLE_RATE, abs=HOP / SAMPLE_RATE)
        assert voice.transcript.endswith(".")
        assert 0 < np.abs(samples).max() < 0.96
    index = json.loads((tmp_path / INDEX).read_text(encoding="utf-8"))
    assert index["speaker"] == SPEAKER
    assert list(index["voices"]) == [one.name for one in VOICES]
    assert [one["formant"] for one in index["voices"].values()] == [one.formant for one in VOICES]


def test_voices_lie_where_models_have_learnt_voices_and_apart_from_each_other():
    for one in VOICES:
        assert PITCHES[0] <= one.pitch <= PITCHES[1]
        assert FORMANTS[0] <= one.formant <= FORMANTS[1]
    assert len(VOICES) >= 4
    for one, other in combinations(VOICES, 2):
        assert abs(np.log(one.pitch / other.pitch)) + 2 * abs(np.log(one.formant / other.formant)) > 0.1
