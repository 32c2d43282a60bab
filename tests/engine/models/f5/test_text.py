from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import CheckpointError, TextError
from paretone.models.f5 import text
from paretone.models.f5.text import (
    Vocabulary,
    encode_bytes,
    finished_transcript,
    pinyin_tokens,
    require_speakable,
    spaced_transcript,
)

LATIN = Vocabulary({token: number for number, token in enumerate(" abcdefghijklmnopqrstuvwxyzT.,!'")})


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Costs $5.99", "Costs $ 5.99"),
        ("either/or", "either/ or"),
        ("naïve", "naï ve"),
        ("AT&T, R&D", "AT&T, R&D"),
        ("wi-fi v1.0", "wi-fi v1.0"),
        ("a...b", "a ...b"),
        ("C++; “C#”", 'C++, "C#"'),
        ("line\r\nbreak", "line \r\n break"),
        ("(he said)", "( he said)"),
        ("", ""),
    ],
)
def test_words_after_symbols_get_the_official_space(written: str, spoken: str) -> None:
    assert "".join(pinyin_tokens(written)) == spoken


@pytest.mark.parametrize("alphabet", ["abCT+#&._%-15 '\":,\r\n$éñ—あ☃🙂А@/", "C+#AT& c", "a.b_c-1% "])
def test_own_segmentation_is_the_segmenters(alphabet: str) -> None:
    rjieba = pytest.importorskip("rjieba")
    random = np.random.default_rng(5)
    for length in random.integers(1, 12, 3000):
        written = "".join(random.choice(list(alphabet), length))
        assert list(text._words_without_chinese(written)) == rjieba.cut(written), repr(written)


def test_chinese_becomes_syllables_with_spaces_between() -> None:
    assert pinyin_tokens("你好。") == [" ", "ni2", " ", "hao3", "。"]
    assert pinyin_tokens("A股 ok") == ["A", " ", "gu3", " ", "o", "k"]


def test_only_chinese_imports_the_segmenter() -> None:
    program = (
        "import sys; from paretone.models.f5.text import pinyin_tokens; "
        "pinyin_tokens('naïve café — «déjà vu» 3.5 Привет テキスト 🙂'); "
        "assert not {'torch', 'rjieba', 'pypinyin'} & set(sys.modules); "
        "pinyin_tokens('好'); assert {'rjieba', 'pypinyin'} <= set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


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
    assert LATIN.encode("The end.").note == ""


def test_character_and_byte_tokenizers_leave_the_text_alone() -> None:
    assert LATIN.encode("a.b", "char").ids == (1, 28, 2)
    assert encode_bytes("aé").ids == (97, 195, 169)


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


@pytest.mark.parametrize(
    ("written", "message"),
    [("", "no text"), (" \n", "no text"), ("🙂🙂", "🙂"), ("?!…", "no letter"), ("привет", "п р")],
)
def test_what_cannot_be_spoken_is_refused(written: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        require_speakable(written, LATIN.encode(written))


def test_twenty_thousand_characters_are_encoded() -> None:
    encoded = LATIN.encode("the quick fox. " * 1400)
    assert len(encoded.ids) == 21000
    require_speakable("the", encoded)


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
