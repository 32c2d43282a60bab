from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import soundfile

from engine.errors import PlainError
from engine.models.shipped_voices import origin_of, shipped_names, shipped_voices
from engine.training.originals import original_speech


def test_every_voice_has_a_title_a_recording_its_text_and_its_phones() -> None:
    voices = shipped_voices()
    assert tuple(one.id for one in voices) == shipped_names()
    assert len({one.title for one in voices}) == len(voices) > 1
    for one in voices:
        about = soundfile.info(one.audio)
        assert one.title != one.id and one.transcript
        assert one.phones[-1][2] == pytest.approx(about.duration, abs=0.02)


def test_it_is_known_how_a_voice_that_ships_came_to_be_and_of_no_other(tmp_path: Path) -> None:
    voices = shipped_voices()
    assert len({origin_of(one) for one in voices}) == len(voices)
    for one in voices:
        assert origin_of(one) is not None
        assert origin_of(replace(one, audio=str(tmp_path / "mine.wav"))) is None


def test_of_a_recording_of_the_users_own_there_is_no_other_speech(tmp_path: Path) -> None:
    mine = replace(shipped_voices()[0], id="own:mine.wav", title="mine", audio=str(tmp_path / "mine.wav"))
    with pytest.raises(PlainError, match="no recording of mine saying"):
        original_speech("Rice.", mine)
