"""Lists of sentences as they are published."""

from __future__ import annotations

from pathlib import Path

import pytest

from paretone.errors import StudyError
from paretone.studies.definition import parse, read_evaluation


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"RIFF")
    return path


@pytest.fixture
def librispeech(tmp_path: Path) -> Path:
    touch(tmp_path / "clean" / "4992" / "41806" / "4992-41806-0009.flac")
    path = tmp_path / "librispeech_pc_test_clean_cross_sentence.lst"
    path.write_text(
        "4992-41806-0009\t4.355\tExclaimed Bill Harmon to his wife.\t4992-23283-0000\t6.645\tBut the more "
        "forgetfulness had then prevailed.\n",
        encoding="utf-8",
    )
    return path


def test_librispeech_pc(librispeech: Path) -> None:
    (row,) = read_evaluation(librispeech, librispeech.parent / "clean")
    assert row.text == "But the more forgetfulness had then prevailed."
    assert row.voice.transcript == "Exclaimed Bill Harmon to his wife."
    assert row.voice.audio == str(librispeech.parent / "clean" / "4992" / "41806" / "4992-41806-0009.flac")
    assert row.reference == str(librispeech.parent / "clean" / "4992" / "23283" / "4992-23283-0000.flac")
    with pytest.raises(StudyError, match="give the folder of test-clean as 'manifest_audio'"):
        read_evaluation(librispeech)
    with pytest.raises(StudyError, match=r"recording .*4992-41806-0009\.flac of the list .* is missing"):
        read_evaluation(librispeech, librispeech.parent)


def test_seed_tts(tmp_path: Path) -> None:
    touch(tmp_path / "prompt-wavs" / "a.wav")
    spoken = touch(tmp_path / "wavs" / "one.wav")
    touch(tmp_path / "said.wav")
    path = tmp_path / "meta.lst"
    path.write_text(
        "one|We asked over twenty people.|prompt-wavs/a.wav|The early bird.\n"
        "two|We asked.|prompt-wavs/a.wav|Two words.|said.wav\n"
        "three|We asked.|prompt-wavs/a.wav|Nobody said that.\n",
        encoding="utf-8",
    )
    rows = read_evaluation(path)
    assert [row.text for row in rows] == ["The early bird.", "Two words.", "Nobody said that."]
    assert [row.reference for row in rows] == [str(spoken), str(tmp_path / "said.wav"), ""]
    assert rows[0].voice.audio == str(tmp_path / "prompt-wavs" / "a.wav")
    study = parse({"manifest": "meta.lst", "count": 2, "grid": {"steps.steps": [4]}, "seeds": "paper"}, root=tmp_path)
    assert len(study.utterances) == 2
    assert study.takes == 2 * 2 * 5
    assert study.utterances[1].reference == str(tmp_path / "said.wav")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("one|two\n", "Line 1 of .* has neither six fields"),
        ("\n\n", "is empty"),
        ("a\tb\tc\td\te\tf\n", "'a' is not speaker"),
    ],
)
def test_other_files(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "list.lst"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StudyError, match=sentence):
        read_evaluation(path, tmp_path)
    with pytest.raises(StudyError, match="could not be read: No such file or directory; check the path"):
        read_evaluation(tmp_path / "nowhere.lst")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(StudyError, match="is not UTF-8 text"):
        read_evaluation(path)
