from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import soundfile

from engine.errors import PlainError
from engine.models.catalogue import MODELS
from engine.models.shipped_voices import ARCTIC, FLITE, Origin, names_of, origin_of, voices_of
from engine.training.originals import original_speech

SETS = sorted({one.voice_set for one in MODELS})


@pytest.mark.parametrize("name", SETS)
def test_every_voice_has_a_title_a_recording_its_text_and_its_phones(name: str) -> None:
    voices = voices_of(name)
    assert tuple(one.id for one in voices) == names_of(name)
    assert len({one.title for one in voices}) == len(voices) > 1
    for one in voices:
        about = soundfile.info(one.audio)
        assert one.title != one.id and one.transcript
        assert one.phones[-1][2] == pytest.approx(about.duration, abs=0.02)


@pytest.mark.parametrize("name", SETS)
def test_it_is_known_who_speaks_in_a_voice_that_ships_and_only_there(name: str, tmp_path: Path) -> None:
    for one in voices_of(name):
        origin = origin_of(one)
        assert origin is not None and origin.speaker
        assert origin_of(replace(one, audio=str(tmp_path / "mine.wav"))) is None


def test_a_synthesisers_voices_are_its_own() -> None:
    assert {origin_of(one) for one in voices_of(ARCTIC)} == {Origin(FLITE)}


def test_of_a_recording_of_the_users_own_there_is_no_other_speech(tmp_path: Path) -> None:
    mine = replace(voices_of(ARCTIC)[0], id="own:mine.wav", title="mine", audio=str(tmp_path / "mine.wav"))
    with pytest.raises(PlainError, match="no recording of mine saying"):
        original_speech("Rice.", mine)
