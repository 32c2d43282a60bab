from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.errors import Cancelled, TrainingError
from paretone.training.manifest import LINES_NAMED, read_manifest
from tests.engine.training.toy_corpus import toy_corpus
from tests.engine.training.toy_model import toy_manifest


def _recording(path: Path, seconds: float = 0.5) -> None:
    samples = np.sin(np.arange(int(16_000 * seconds)) / 9.0)
    soundfile.write(path, samples, 16_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(6):
        _recording(tmp_path / f"{number}.wav")
    return tmp_path


def _manifest(folder: Path, text: str) -> Path:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return path


def _rows(*extra: str) -> str:
    return "audio,text\n" + "".join(f"{number}.wav,Sentence {number}.\n" for number in range(4)) + "".join(extra)


def test_two_columns_are_enough_and_some_rows_are_kept_back(folder: Path):
    rows = read_manifest(_manifest(folder, _rows('4.wav,"One, two."\n', "\n", "5.wav,Six.\n")))
    assert [row.line for row in rows] == [2, 3, 4, 5, 6, 8]
    assert rows[4].text == "One, two."
    assert rows[0].audio == folder / "0.wav"
    assert [row.held_out for row in rows] == [True, False, False, True, False, False]


def test_all_columns_in_any_order_and_a_byte_order_mark(folder: Path):
    lines = ["set,phones,voice,text,audio"]
    lines += [f"{('train', 'validation')[n % 2]},pau:0.1 aa:0.3 pau:0.5,me,Ah.,{n}.wav" for n in range(6)]
    rows = read_manifest(_manifest(folder, "\ufeff" + "\n".join(lines)))
    assert rows[0].phones == (("pau", 0.0, 0.1), ("aa", 0.1, 0.3), ("pau", 0.3, 0.5))
    assert {row.voice for row in rows} == {"me"}
    assert [row.held_out for row in rows] == [False, True] * 3


def test_a_whole_corpus_is_read_as_it_is(tmp_path: Path):
    corpus = toy_corpus(4)
    rows = read_manifest(toy_manifest(tmp_path, clips=4))
    assert [row.held_out for row in rows] == [False] * 4 + [True] * 4
    for row, clip in zip(rows, [*corpus.training, *corpus.held_out], strict=True):
        assert soundfile.info(row.audio).frames == len(clip.samples)
        assert [phone for phone, _, _ in row.phones] == [phone for phone, _, _ in clip.phones]
        ends = [end for _, _, end in row.phones]
        np.testing.assert_allclose(ends, [end for _, _, end in clip.phones], atol=1e-4)
        assert row.voice == clip.voice


def test_every_line_at_fault_is_named_with_what_is_wrong(folder: Path):
    (folder / "broken.wav").write_bytes(b"no sound")
    _recording(folder / "short.wav", 0.1)
    _recording(folder / "long.wav", 31)
    path = _manifest(
        folder,
        "audio,text,phones,set\n"
        "0.wav,Good.,,\n"
        "gone.wav,Lost.,,\n"
        "1.wav,,,\n"
        "broken.wav,Noise.,,\n"
        "short.wav,Hm.,,\n"
        "long.wav,And so on.,,\n"
        "2.wav,Ah.,aa,\n"
        "2.wav,Ah.,aa:0.4 s:0.2,\n"
        "2.wav,Ah.,aa:9,\n"
        "2.wav,Ah.,,test\n"
        ",Ah.,,\n"
        "3.wav,One, two.,,\n",
    )
    with pytest.raises(TrainingError) as refusal:
        read_manifest(path)
    lines = str(refusal.value).splitlines()
    assert str(path) in lines[0]
    assert "11 lines" in lines[0]
    expected = {
        3: "no file",
        4: "no text",
        5: "not a recording",
        6: "lasts 0.10 s",
        7: "lasts 31.00 s",
        8: "phone:end",
        9: "one after the other",
        10: "one after the other",
        11: "'test'",
        12: "no audio file",
        13: "more cells",
    }
    for line, (number, words) in zip(lines[1:], expected.items(), strict=True):
        assert line.strip().startswith(f"line {number}: ")
        assert words in line


def test_many_lines_at_fault_are_counted(folder: Path):
    path = _manifest(folder, _rows(*(f"gone{number}.wav,Text.\n" for number in range(50))))
    with pytest.raises(TrainingError, match=f"50 lines[^$]*and {50 - LINES_NAMED} more"):
        read_manifest(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("file,text\n0.wav,Hello.\n", "file, text"),
        ("audio\n0.wav\n", "needs audio and text"),
        ("audio,text,speed\n0.wav,Hello.,2\n", "nothing else"),
        ("audio,text,text\n0.wav,Hello.,Hello.\n", "nothing else"),
        ("audio,text\n", "lists 0 recordings"),
        ("audio,text\n0.wav,One.\n1.wav,Two.\n", "lists 2 recordings"),
        ('audio,text\n0.wav,"never closed\n', "not a CSV"),
        ("audio,text,set\n" + "".join(f"{n}.wav,Hi.,validation\n" for n in range(4)), "validate on only"),
    ],
)
def test_what_is_no_manifest_is_said(folder: Path, text: str, words: str):
    with pytest.raises(TrainingError, match=words):
        read_manifest(_manifest(folder, text))


def test_a_manifest_that_cannot_be_read_is_said(tmp_path: Path):
    with pytest.raises(TrainingError, match="no manifest"):
        read_manifest(tmp_path / "nowhere.csv")
    with pytest.raises(TrainingError, match="cannot be read: it is a folder"):
        read_manifest(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(TrainingError, match="cannot be read: it is a pipe"):
        read_manifest(tmp_path / "pipe.csv")
    (tmp_path / "latin.csv").write_bytes(b"audio,text\n0.wav,caf\xe9\n")
    with pytest.raises(TrainingError, match="UTF-8"):
        read_manifest(tmp_path / "latin.csv")


def test_reading_can_be_cancelled(folder: Path):
    looks = []

    def check() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        read_manifest(_manifest(folder, _rows()), check)
    assert len(looks) == 3
