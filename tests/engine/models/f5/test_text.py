"""Texts, prompts and durations of F5-TTS: characters and pinyin, chunks, frames, phones of the bundled model."""

import string
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.errors import AudioError, CheckpointError, TextError
from paretone.front_end.pronunciations import HowToRead
from paretone.models.base import Voice
from paretone.models.f5 import text
from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.models.f5.front_end import CharacterFrontEnd, Prompt, PromptLevel, PromptReader, total_frames
from paretone.models.f5.text import (
    Vocabulary,
    finished_transcript,
    maximum_bytes,
    pinyin_tokens,
    require_speakable,
    spaced_transcript,
    split,
)

LATIN = Vocabulary({token: number for number, token in enumerate(" abcdefghijklmnopqrstuvwxyzT.,!'")})


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Costs $5.99", "Costs $ 5.99"),
        ("either/or", "either/ or"),
        ("naïve", "naï ve"),
        ("C++; “C#”", 'C++, "C#"'),
        ("line\r\nbreak", "line \r\n break"),
    ],
)
def test_words_after_symbols_get_the_official_space(written: str, spoken: str) -> None:
    assert "".join(pinyin_tokens(written)) == spoken


def test_own_segmentation_is_the_segmenters() -> None:
    rjieba = pytest.importorskip("rjieba")
    random, alphabet = np.random.default_rng(5), "abCT+#&._%-15 '\":,\r\n$éñ—あ☃🙂А@/"
    for length in random.integers(1, 12, 3000):
        written = "".join(random.choice(list(alphabet), length))
        assert list(text.words_without_chinese(written)) == rjieba.cut(written), repr(written)


def test_chinese_becomes_syllables_with_spaces_between() -> None:
    assert pinyin_tokens("你好。") == [" ", "ni2", " ", "hao3", "。"]
    assert pinyin_tokens("A股 ok") == ["A", " ", "gu3", " ", "o", "k"]


@pytest.mark.parametrize("package", ["rjieba", "pypinyin"])
def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TextError, match=rf"package {package} is needed.*paretone\[chinese\]"):
        pinyin_tokens("你好")
    assert pinyin_tokens("hello") == list("hello")


def test_unknown_characters_are_named_once_and_spoken_as_spaces() -> None:
    encoded = LATIN.encode("The жук, the 🙂 жук!")
    assert encoded.unknown == ("ж", "у", "к", "🙂")
    assert "dropped: ж у к 🙂" in encoded.note
    assert len(encoded.ids) == len(encoded.tokens)
    assert all(
        number == 0 for token, number in zip(encoded.tokens, encoded.ids, strict=True) if token in encoded.unknown
    )
    assert not LATIN.encode("The end.").unknown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Das ist nicht mehr als ein Test für die Stimme.", "The text looks like German. The model's vocabulary"),
        ("Это простая проверка голоса.", "The text is written in Cyrillic script. The model's vocab"),
        ("This is a test of the voice.", ""),
        ("Das ist nicht mehr als ein Test mit ß für die Stimme.", "The model does not know this character, dropped: ß"),
    ],
)
def test_a_language_that_the_vocabulary_covers_is_spoken_and_said(text: str, said: str) -> None:
    letters = "abcdefghijklmnopqrstuvwxyzü" + "абвгдежзийклмнопрстуфхцчшщъыьэюя"
    known = {token: number for number, token in enumerate(f" ,.{letters}{letters.upper()}")}
    notes = CharacterFrontEnd(Vocabulary(known), "char").passages(text, prompt(), HowToRead()).notes
    assert [note.startswith(said) for note in notes] == [True] * bool(said), notes


def test_vocabulary_keeps_its_spaces(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b" \n!\nzhong1\n\xe3\x80\x80\n")
    vocabulary = Vocabulary.read(path)
    assert len(vocabulary) == 4
    assert vocabulary.encode(" !\u3000").ids == (0, 1, 3)
    path.write_bytes(b" \r\n!\r\na")
    assert Vocabulary.read(path).encode("a! ").ids == (2, 1, 0)


def test_faulty_vocabularies_are_named(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    with pytest.raises(CheckpointError, match=r"vocab\.txt is missing"):
        Vocabulary.read(path)
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="is empty"):
        Vocabulary.read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CheckpointError, match="cannot be read as UTF-8"):
        Vocabulary.read(path)
    path.write_bytes(b"a\nb\n")
    with pytest.raises(CheckpointError, match="has 2 entries, but the checkpoint was made for 3"):
        Vocabulary.read(path).require_entries(3, str(path))


@pytest.mark.parametrize(("written", "message"), [(" \n", "no text"), ("?!…", "no letter"), ("привет", "п р")])
def test_what_cannot_be_spoken_is_refused(written: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        require_speakable(written, LATIN.encode(written))


def test_transcripts_end_as_the_official_code_ends_them() -> None:
    assert finished_transcript("Hello") == "Hello. "
    assert finished_transcript("Hello.") == "Hello. "
    assert finished_transcript("Hello. ") == "Hello. "
    assert finished_transcript("你好。") == "你好。"
    assert spaced_transcript("Hello. ") == "Hello.  "
    assert spaced_transcript("你好。") == "你好。"
    with pytest.raises(TextError, match="no transcript"):
        finished_transcript(" \n")


def test_a_vocabulary_with_an_entry_twice_names_it(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text(" \na\nb\nc\nb\nd\ne\n", encoding="utf-8")
    for entries in (6, 7):
        with pytest.raises(CheckpointError, match=rf"has the entry 'b' twice, in lines 3 and 5, .* {entries} of the"):
            Vocabulary.read(path).require_entries(entries, str(path))


# --- Passages ---------------------------------------------------------------------------------------------------------
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
    return [passage.text for passage in front_end.passages(text, of, HowToRead(quick_start=quick_start)).passages]


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


def test_a_transcript_of_which_the_model_knows_nothing_is_refused_as_such() -> None:
    foreign = replace(prompt(), voice=replace(prompt().voice, transcript="Привет, как дела?"))
    with pytest.raises(TextError, match=r"no letter or digit of the voice's transcript, “Привет, как дела\?.*”; ch"):
        CharacterFrontEnd(LETTERS, "char").passages("Hello.", foreign, HowToRead(quick_start=True))


# --- Chunks -----------------------------------------------------------------------------------------------------------
PARAGRAPH = TEXT.partition(" Then")[0]


@pytest.mark.parametrize("maximum", [20, 60])
def test_pieces_keep_every_word_and_stay_below_the_maximum(maximum: int) -> None:
    pieces = split(PARAGRAPH, maximum)
    assert " ".join(pieces) == PARAGRAPH
    for piece in pieces:
        assert len(piece) <= maximum or len(split(piece, 0)) == 1


def test_chinese_is_cut_after_its_own_punctuation_and_joined_without_spaces() -> None:
    assert split("你好，世界。再见！", 18) == ["你好，世界。", "再见！"]


def test_an_overlong_clause_stays_whole_unless_asked() -> None:
    words = "word " * 100
    assert split(words.strip(), 60) == [words.strip()]
    broken = split(words.strip(), 60, break_long=True)
    assert " ".join(broken) == words.strip()
    assert max(map(len, broken)) <= 60


@pytest.mark.parametrize("text", ["好" * 500, "a" * 100 + " b " + "c" * 100])
def test_an_overlong_word_is_broken_between_characters(text: str) -> None:
    broken = split(text, 50, break_long=True)
    assert "".join("".join(broken).split()) == "".join(text.split())
    assert max(len(piece.encode()) for piece in broken) <= 50


# --- Durations and levels ---------------------------------------------------------------------------------------------


def test_short_text_is_spoken_slowly_whatever_the_speed() -> None:
    assert total_frames(60, "x" * 20, "y" * 9, speed=2.0) == 60 + int(60 / 20 * 9 / 0.3)
    assert total_frames(60, "x" * 20, "y" * 10, speed=2.0) == 60 + 15


def test_a_quiet_prompt_is_raised_and_the_speech_lowered_again() -> None:
    samples = torch.tensor([0.02, -0.02, 0.02, -0.02])
    level = PromptLevel.measure(samples)
    assert level.raised
    torch.testing.assert_close(level.normalised(samples).abs(), torch.full((4,), 0.1))
    torch.testing.assert_close(level.restored(level.normalised(samples)), samples)


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_a_level_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(AudioError, match="silent or damaged"):
        PromptLevel.measure(torch.full((10,), value))


# --- Phones of prompts ------------------------------------------------------------------------------------------------
PHONES = (("pau", 0.0, 0.3), ("aa", 0.3, 0.8))


@pytest.mark.parametrize(
    ("known", "kept"), [(None, PHONES), ({"pau", "aa", "iy"}, PHONES), ({"pau", "ɑ"}, ())], ids=["any", "all", "others"]
)
def test_phones_count_only_where_the_model_knows_them(
    tmp_path: Path, known: set[str] | None, kept: tuple[object, ...]
) -> None:
    soundfile.write(tmp_path / "a.wav", 0.1 * np.random.default_rng(0).standard_normal(19_200), 24_000)
    prompt = PromptReader(known)(Voice("a", "A", str(tmp_path / "a.wav"), "Ah.", PHONES))
    assert prompt.voice.phones == kept
    assert prompt.mel.shape[1] == prompt.frames + (known is None)
