"""What is said of a recording whose words are not found, as the bundled models read it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from paretone.audio.mel import MelFrontEnd
from paretone.front_end.reading import NaturalReader
from paretone.models.base import Voice
from paretone.models.catalogue import voice
from paretone.models.f5.front_end import PromptReader
from paretone.models.minis.speaking import phones_of_prompt
from tests.voices import FIRST

OTHER = "The juice of lemons makes fine punch, and nobody knows why."


def _notes(folder: Path, transcript: str) -> tuple[str, ...]:
    own = shutil.copyfile(voice(FIRST).audio, folder / "me.wav")
    read = PromptReader(MelFrontEnd(), True)(Voice("me", "Me", str(own), transcript))
    return phones_of_prompt(read, NaturalReader())[1]


def test_words_that_are_not_found_are_said_once(tmp_path: Path) -> None:
    pytest.importorskip("pocketsphinx")
    doubt, effect = _notes(tmp_path, f"{voice(FIRST).transcript} {OTHER}")
    assert doubt.startswith("The words of the transcript could not be found in me.wav; check")
    assert "only estimated, so the voice may be copied less well" in effect and "found" not in effect
    assert _notes(tmp_path, voice(FIRST).transcript) == ()


def test_without_the_aligner_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    (effect,) = _notes(tmp_path, voice(FIRST).transcript)
    assert "only estimated" in effect and "paretone[judge]" in effect
