from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.audio.mel import MelFrontEnd
from paretone.models.base import Voice
from paretone.models.f5.front_end import PromptReader

PHONES = (("pau", 0.0, 0.3), ("aa", 0.3, 0.8))


@pytest.fixture
def voice(tmp_path: Path) -> Voice:
    samples = 0.1 * np.random.default_rng(0).standard_normal(19_200)
    soundfile.write(tmp_path / "a.wav", samples, 24_000)
    return Voice("a", "A", str(tmp_path / "a.wav"), "Ah.", PHONES)


@pytest.mark.parametrize(
    ("known", "kept"), [(None, PHONES), ({"pau", "aa", "iy"}, PHONES), ({"pau", "ɑ"}, ())], ids=["any", "all", "others"]
)
def test_phones_count_only_where_the_model_knows_them(
    voice: Voice, known: set[str] | None, kept: tuple[object, ...]
) -> None:
    prompt = PromptReader(MelFrontEnd(), whole_frames=True, phones=known)(voice)
    assert prompt.voice.phones == kept
    assert prompt.frames == prompt.mel.shape[1]
