"""Prompts of the language model by mode, and messages about texts, modes and transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from paretone.errors import AudioError, TextError
from paretone.models.base import Voice
from paretone.models.cosyvoice2.config import CROSS_LINGUAL, INSTRUCT, USUAL_TOKENS, ZERO_SHOT
from paretone.models.cosyvoice2.front_end import VoicePrompt, prepare
from paretone.models.cosyvoice2.text import TextTokenizer
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt
from tests.engine.models.cosyvoice2.small_tokenizer import write_tokenizer

TOKENS = 60
HEARD = VoicePrompt(
    AcousticPrompt(torch.arange(TOKENS)[None], torch.zeros(1, 2 * TOKENS, 80), torch.ones(1, 24)), 2.4, ("Noted.",)
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("blank")
    write_tokenizer(folder)
    return TextTokenizer.load(folder)


def voice(transcript: str = "What was said.") -> Voice:
    return Voice("own", "Own", str(Path("own.wav")), transcript)


def test_zero_shot_continues_the_recording(tokenizer: TextTokenizer) -> None:
    prompt, read = prepare("I have 2 cats", ZERO_SHOT, "", voice("Room 7."), HEARD, tokenizer)
    # Text and transcript are normalised alike.
    assert prompt.ids.text == tuple(tokenizer.encode("Room seven.")) and prompt.ids.speech == tuple(range(TOKENS))
    (passage,) = read.passages
    assert passage.text == "I have two cats." and passage.ids == tuple(tokenizer.encode("I have two cats."))
    assert passage.expected == round(TOKENS / len(prompt.ids.text) * len(passage.ids))
    assert prompt.notes == ("Noted.",) and read.notes == ()


def test_the_other_modes_take_only_the_voice(tokenizer: TextTokenizer) -> None:
    prompt, read = prepare("Hello.", CROSS_LINGUAL, "", voice(), HEARD, tokenizer)
    assert prompt.ids.text == prompt.ids.speech == () and prompt.voice is HEARD
    assert read.passages[0].expected == round(USUAL_TOKENS * len(read.passages[0].ids))
    prompt, read = prepare("I have 2 cats.", INSTRUCT, " Softly. ", voice(""), HEARD, tokenizer)
    assert prompt.ids.text == tuple(tokenizer.encode("Softly.<|endofprompt|>")) and prompt.ids.speech == ()
    assert [one.text for one in read.passages] == ["I have two cats."]


def test_digits_that_stay_digits_are_expected_as_words(tokenizer: TextTokenizer) -> None:
    # A text with a mark for the model is left as it is written.
    _, read = prepare("<|zh|>1984", CROSS_LINGUAL, "", voice(), HEARD, tokenizer)
    (passage,) = read.passages
    assert passage.ids == tuple(tokenizer.encode("<|zh|>1984"))
    assert passage.expected == round(USUAL_TOKENS * tokenizer.count("<|zh|>nineteen eighty four"))


@pytest.mark.parametrize(
    ("text", "mode", "instruction", "problem"),
    [
        ("Softly.<|endofprompt|>Hello.", ZERO_SHOT, "", "option “Instruction”, and choose “With an instruction”"),
        ("Hello.", INSTRUCT, "Softly.<|endofprompt|>", "inserted automatically; leave it out"),
        ("Hello.", INSTRUCT, " ", "There is no instruction; write how to speak"),
        (" ", INSTRUCT, "Softly.", "no text to speak"),
        (" ", ZERO_SHOT, "", "no text to speak"),
    ],
)
def test_texts_that_do_not_go_with_the_mode_are_refused(
    tokenizer: TextTokenizer, text: str, mode: str, instruction: str, problem: str
) -> None:
    with pytest.raises(TextError, match=problem):
        prepare(text, mode, instruction, voice(), HEARD, tokenizer)


def test_an_instruction_that_is_not_followed_is_noted(tokenizer: TextTokenizer) -> None:
    prompt, read = prepare("Hello.", CROSS_LINGUAL, "Softly.", voice(), HEARD, tokenizer)
    assert prompt.ids.text == ()
    assert read.notes == ("The instruction was ignored: choose the mode “With an instruction”.",)


def test_a_missing_transcript_is_asked_for(tokenizer: TextTokenizer) -> None:
    with pytest.raises(AudioError, match="type it, or choose the mode “Cross-lingual”") as refused:
        prepare("Hello.", ZERO_SHOT, "", voice(" "), HEARD, tokenizer)
    assert refused.value.lacks_transcript, "the command line says how to give it"


@pytest.mark.parametrize(
    ("transcript", "amount"), [("More than anybody says. " * 2, "long"), ("A", "short"), ("Just enough.", "")]
)
def test_a_transcript_that_cannot_be_what_is_said_is_noted(
    tokenizer: TextTokenizer, transcript: str, amount: str
) -> None:
    prompt, _ = prepare("A text of much the same length, or so.", ZERO_SHOT, "", voice(transcript), HEARD, tokenizer)
    found = [note for note in prompt.notes if "for the recording's 2.4 s" in note]
    assert [f"is too {amount} for" in note for note in found] == ([True] if amount else [])


def test_a_text_much_shorter_than_the_transcript_is_noted(tokenizer: TextTokenizer) -> None:
    _, read = prepare("Go on.", ZERO_SHOT, "", voice(), HEARD, tokenizer)
    assert any("much shorter than the recording's transcript" in note for note in read.notes)
