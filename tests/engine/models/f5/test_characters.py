"""The official way of reading: where a text is cut, and what cannot be read."""

from __future__ import annotations

import string
from dataclasses import replace

import pytest
import torch

from paretone.errors import TextError
from paretone.models.base import Voice
from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.models.f5.front_end import CharacterFrontEnd, Prompt, PromptLevel
from paretone.models.f5.text import Vocabulary, maximum_bytes, split

TRANSCRIPT = "Rice is often served in round bowls."
FINISHED = f"{TRANSCRIPT} "
TEXT = (
    "The boat left early, before the sun was up. Nobody saw it go! Who would have thought so? "
    "It came back at noon; the nets were full: herring, mostly. Then they all went home. And that was that."
)
LETTERS = Vocabulary({token: number for number, token in enumerate([" ", *string.ascii_letters, *string.punctuation])})


def prompt(samples: int = 6 * SAMPLE_RATE) -> Prompt:
    frames = samples // HOP
    mel = torch.zeros(1, frames + 1, 100)
    seconds = samples / SAMPLE_RATE
    return Prompt(Voice("v", "V", "v.wav", TRANSCRIPT), mel, frames, PromptLevel(0.1), torch.zeros(samples), seconds)


def texts(text: str, quick_start: bool, of: Prompt) -> list[str]:
    front_end = CharacterFrontEnd(LETTERS, "char")
    return [passage.text for passage in front_end.passages(text, of, 1.0, quick_start).passages]


def test_without_quick_start_a_text_is_cut_as_the_official_code_cuts_it() -> None:
    maximum = maximum_bytes(FINISHED, 6.0)
    assert texts(TEXT, False, prompt()) == split(TEXT, maximum)
    endless = "word " * 100
    assert texts(endless, False, prompt()) == [endless.strip()]


def test_quick_start_shortens_the_beginning_and_keeps_every_word() -> None:
    quick, official = texts(TEXT, True, prompt()), texts(TEXT, False, prompt())
    assert len(quick[0]) < len(official[0]) / 2
    assert " ".join(quick) == " ".join(official) == TEXT
    assert len(texts("word " * 100, True, prompt())) > 3, "clauses without an end are broken"


def test_the_budget_counts_the_recording_to_the_sample() -> None:
    """Rounded to whole frames, this prompt would leave room for one byte more."""
    samples = next(
        samples
        for samples in range(6 * SAMPLE_RATE, 7 * SAMPLE_RATE)
        if maximum_bytes(FINISHED, samples / SAMPLE_RATE) < maximum_bytes(FINISHED, samples // HOP * HOP / SAMPLE_RATE)
    )
    maximum = maximum_bytes(FINISHED, samples / SAMPLE_RATE)
    one, other = "a" * (maximum - 1) + ".", "b" * 5 + "."
    fits_only_when_rounded = f"{one[: -len(other) - 1]}. {other}"
    assert len(fits_only_when_rounded) == maximum + 1
    assert len(texts(fits_only_when_rounded, False, prompt(samples))) == 2
    assert len(texts(fits_only_when_rounded, False, prompt(samples // HOP * HOP))) == 1


@pytest.mark.parametrize("text", ["", " \n", "🙂🎉", "...", "Привет", "你好"])
def test_what_the_vocabulary_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(TextError, match=r"no text to speak|knows no letter or digit"):
        texts(text, True, prompt())


def test_characters_that_the_vocabulary_lacks_are_named() -> None:
    passages = CharacterFrontEnd(LETTERS, "char").passages("Hello мир.", prompt(), 1.0, True)
    assert passages.notes == ("The model does not know these characters, dropped: м и р",)


def test_twenty_thousand_characters_become_passages_that_the_model_can_speak() -> None:
    text = (TEXT + " ") * 200
    for quick_start in (True, False):
        passages = CharacterFrontEnd(LETTERS, "char").passages(text[:20_000], prompt(), 1.0, quick_start).passages
        assert len(passages) > 100
        assert max(passage.frames for passage in passages) <= 24 * SAMPLE_RATE / HOP


def test_a_transcript_of_which_the_model_knows_nothing_is_refused_as_such() -> None:
    foreign = replace(prompt(), voice=replace(prompt().voice, transcript="Привет, как дела?"))
    with pytest.raises(
        TextError, match=r"no letter or digit of the voice's transcript, “Привет, как дела\?.*”; choose"
    ):
        CharacterFrontEnd(LETTERS, "char").passages("Hello.", foreign, 1.0, True)
