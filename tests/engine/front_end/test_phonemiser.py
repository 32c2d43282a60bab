from __future__ import annotations

import subprocess
import sys

import pytest

from engine.errors import TextError
from engine.front_end.phonemiser import MOST_CHARACTERS, Phonemiser
from engine.front_end.phones import CONSONANTS, PAUSE, VOWELS
from engine.paths import resource


@pytest.fixture(scope="module")
def phonemise() -> Phonemiser:
    return Phonemiser()


def test_a_sentence(phonemise: Phonemiser) -> None:
    said = phonemise("The apple, the pear.")
    assert said.phones == tuple("dh iy ae p ax l pau dh ax p eh r".split())
    assert [(word.text, word.first, word.last) for word in said.words] == [
        ("the", 0, 2), ("apple", 2, 6), ("the", 7, 9), ("pear", 9, 12)
    ]  # fmt: skip
    assert (said.dropped, said.guessed, said.notes) == ((), (), ())


def test_function_words_are_reduced(phonemise: Phonemiser) -> None:
    assert phonemise("a cup of tea to go").phones == tuple("ax k ah p ax v t iy t ax g ow".split())


def test_letters_are_named(phonemise: Phonemiser) -> None:
    assert phonemise("vitamin A").phones[-1] == "ey"
    assert phonemise("a TTS").phones == tuple("ax t iy t iy eh s".split())


@pytest.mark.parametrize("file", ["demo.txt", "harvard.txt"])
def test_bundled_sentences_are_spoken_whole(phonemise: Phonemiser, file: str) -> None:
    for sentence in resource("sentences", file).read_text(encoding="utf-8").splitlines():
        said = phonemise(sentence)
        assert said.dropped == ()
        assert set(said.phones) <= VOWELS | CONSONANTS | {PAUSE}
        assert said.phones[0] != PAUSE
        assert said.phones[-1] != PAUSE
        assert all(
            first != PAUSE or second != PAUSE for first, second in zip(said.phones, said.phones[1:], strict=False)
        )
        covered = [position for word in said.words for position in range(word.first, word.last)]
        assert covered == [position for position, phone in enumerate(said.phones) if phone != PAUSE]


def test_harvard_sentences_need_no_guess(phonemise: Phonemiser) -> None:
    text = resource("sentences", "harvard.txt").read_text(encoding="utf-8")
    assert phonemise(text).guessed == ()


def test_unknown_words_and_dropped_characters_are_reported(phonemise: Phonemiser) -> None:
    said = phonemise("The blorf 😀 sleeps.")
    assert said.guessed == ("blorf",)
    assert said.notes == (
        "Left out, because the model has no sound for it: 😀 (grinning face).",
        "Read by rule, not in the lexicon: blorf.",
    )
    many = phonemise(" ".join(f"blorf{ending}" for ending in "ab ac ad af ag ak al am an ap".split()))
    assert many.notes[0].endswith("blorfak, blorfal, blorfam and 2 more.")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no text to speak"),
        (" \n\t", "no text to speak"),
        ("😀😀", r"😀 \(grinning face\)"),
        ("你好世界", "你 好 世 界"),
        ("...?!", "only punctuation"),
        ("x" * (MOST_CHARACTERS + 1), "50,001 characters, and 50,000 is the limit"),
    ],
)
def test_text_that_cannot_be_spoken(phonemise: Phonemiser, text: str, sentence: str) -> None:
    with pytest.raises(TextError, match=sentence):
        phonemise(text)


def test_a_part_without_sound_is_read_as_nothing(phonemise: Phonemiser) -> None:
    read = phonemise.read("你好。")
    assert (read.phones, read.words, read.dropped) == ((), (), ("你", "好", "。"))


@pytest.mark.parametrize("unit", ["word ", "x", "1", "a.", "a-", "@", "http://", "  ", "$1,", "\n\n", "I."])
def test_twenty_thousand_characters_of_anything_come_back_quickly(phonemise: Phonemiser, unit: str) -> None:
    text = "go " + (unit * 20_000)[:20_000]
    assert len(phonemise(text).phones) > 1


def test_the_front_end_needs_no_torch() -> None:
    program = (
        "import sys, engine.front_end.phonemiser, engine.front_end.alignment, engine.front_end.chunking, "
        "engine.measure.loudness, engine.measure.fidelity; "
        "sys.exit('torch' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=resource().parent).returncode == 0
