"""Lists of sentences as they are published."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.errors import StudyError
from paretone.models import catalogue
from paretone.setting.setting import Setting
from paretone.studies.definition import parse, to_toml
from paretone.studies.evaluation_sets import PUBLISHED, EvaluationSet, StudySentence, read_evaluation


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"RIFF")
    return path


def test_librispeech_pc(tmp_path: Path) -> None:
    clean, librispeech = tmp_path / "clean", tmp_path / "librispeech_pc_test_clean_cross_sentence.lst"
    prompt = touch(clean / "4992" / "41806" / "4992-41806-0009.flac")
    spoken = "4992-23283-0000\t6.645\tBut the more forgetfulness had then prevailed."
    librispeech.write_text(f"4992-41806-0009\t4.355\tExclaimed Bill Harmon to his wife.\t{spoken}\n", encoding="utf-8")
    found = read_evaluation(librispeech, clean)
    (row,) = found.rows
    assert found.checked == "not as published: its SHA-256 differs", "one line of 1,127"
    published = EvaluationSet(librispeech, next(iter(PUBLISHED)), found.rows)
    assert "cross-sentence: 1 lines" in published.words and published.words.endswith(", as published.")
    assert row.text == "But the more forgetfulness had then prevailed."
    assert row.voice.transcript == "Exclaimed Bill Harmon to his wife." and row.voice.audio == str(prompt)
    assert row.reference == str(clean / "4992" / "23283" / "4992-23283-0000.flac")
    with pytest.raises(StudyError, match=r"give the folder of its recordings \(manifest_audio"):
        read_evaluation(librispeech)
    with pytest.raises(StudyError, match=r"recording .*4992-41806-0009\.flac of the list .* is missing"):
        read_evaluation(librispeech, tmp_path)


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
    rows = read_evaluation(path).rows
    assert [row.text for row in rows] == ["The early bird.", "Two words.", "Nobody said that."]
    assert [row.reference for row in rows] == [str(spoken), str(tmp_path / "said.wav"), ""]
    assert rows[0].voice.audio == str(tmp_path / "prompt-wavs" / "a.wav")
    study = parse({"manifest": "meta.lst", "count": 2, "grid": {"steps.steps": [4]}, "seeds": "paper"}, root=tmp_path)
    assert len(study.utterances) == 2 and study.takes == 2 * 2 * 5
    assert study.utterances[1].reference == str(tmp_path / "said.wav")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("one|two|three\n", "Line 1 of .* has neither six fields"),
        ("one.wav|What it says.\n", "has a single recording; a text is spoken in the voice of another"),
        ("\n\n", "is empty"),
        ("a\tb\tc\td\te\tf\n", "'a' is not speaker"),
    ],
)
def test_other_files(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "list.lst"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StudyError, match=sentence):
        read_evaluation(path, tmp_path)
    with pytest.raises(StudyError, match="There is no list "):
        read_evaluation(tmp_path / "nowhere.lst")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(StudyError, match="is not UTF-8"):
        read_evaluation(path)


def spoken(path: Path, seconds: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(round(seconds * 8000), np.float32), 8000)
    return path


@pytest.fixture
def chinese(tmp_path: Path) -> Path:
    """Seed-TTS's folders with two lines, one of which has an instruction."""
    folder = tmp_path / "seedtts_testset" / "zh"
    spoken(folder / "prompt-wavs" / "a.wav", 3.6)
    spoken(folder / "wavs" / "one.wav", 7.2)
    for name in ("meta.lst", "hardcase.lst"):
        (folder / name).write_text(
            "one|\u4f60\u597d\u3002|prompt-wavs/a.wav|\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002\n"
            "two|\u4f60\u597d\u3002|prompt-wavs/a.wav|\u518d\u89c1\u3002|Speak softly.\n",
            encoding="utf-8",
        )
    return folder


def test_seed_tts_in_chinese_and_its_hard_cases(chinese: Path) -> None:
    found = read_evaluation(chinese / "meta.lst")
    assert [row.text for row in found.rows] == ["\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002", "\u518d\u89c1\u3002"]
    assert [row.instruction for row in found.rows] == ["", "Speak softly."]
    assert [Path(row.reference).name for row in found.rows] == ["one.wav", ""]
    assert found.hours == (pytest.approx(0.001), pytest.approx(0.002)), "the prompt of both lines counts once"
    assert found.words.startswith(
        "Seed-TTS test-zh: 2 lines, 0.00 h of prompts, 0.00 h of recordings of 1 of the texts, instructions in 1 "
    )
    assert found.checked == "not as published: that has 2,020 lines"
    assert read_evaluation(chinese / "hardcase.lst").title == "Seed-TTS test-zh, hard cases"


def test_an_instruction_is_for_models_that_follow_any(chinese: Path) -> None:
    plain, instructed = read_evaluation(chinese / "meta.lst").rows
    follows = Setting("CosyVoice2-0.5B", catalogue.entry("CosyVoice2-0.5B").options_with(mode="instruct"))
    other = Setting("f5-mini", catalogue.entry("f5-mini").options_with())
    assert plain.instructed(follows) == follows and instructed.instructed(other) == other
    assert instructed.instructed(follows).options["instruction"] == "Speak softly."
    without = StudySentence(instructed.text, instructed.voice)
    assert without.key != instructed.key, "a text with an instruction is another utterance"


def test_recordings_with_their_texts(tmp_path: Path) -> None:
    for name in "abc":
        touch(tmp_path / f"{name}.wav")
    path = tmp_path / "metadata.csv"
    path.write_text("audio_file|text\na.wav|First.\nb.wav|Second, then.\nc.wav|Third.\n", encoding="utf-8")
    found = read_evaluation(path)
    rows = found.rows
    assert found.checked == "a list of no known set, recorded and not checked"
    assert [one.text for one in rows] == ["First.", "Second, then.", "Third."]
    assert [one.voice.transcript for one in rows] == ["Third.", "First.", "Second, then."]
    assert [Path(one.reference).name for one in rows] == ["a.wav", "b.wav", "c.wav"]
    path.write_text('audio,text,voice\na.wav,"One, two.",x\nb.wav,Other.,y\nc.wav,Third.,x\nd.wav,Last.,y\n')
    touch(tmp_path / "d.wav")
    rows = read_evaluation(path).rows
    assert [Path(one.voice.audio).name for one in rows] == ["c.wav", "d.wav", "a.wav", "b.wav"], "of the same voice"


def test_a_csv_of_prompts_and_texts(tmp_path: Path) -> None:
    touch(tmp_path / "me.wav")
    path = tmp_path / "mine.csv"
    path.write_text('text,prompt,transcript,instruction\n"Well, yes.",me.wav,Hello.,Shout.\n', encoding="utf-8")
    (row,) = read_evaluation(path).rows
    assert (row.text, row.voice.transcript, row.instruction, row.reference) == ("Well, yes.", "Hello.", "Shout.", "")
    for content, sentence in (
        ("text,prompt\na,me.wav\n", "has the columns text, prompt, but needs text, prompt and transcript"),
        ("text,prompt,transcript\na,me.wav\n", "Line 2 of .* it has 2 cells, not 3"),
        ("text,prompt,transcript\n,me.wav,Hello.\n", "Line 2 of .*: no text"),
        ("text,prompt,transcript\na,you.wav,Hello.\n", "recording .*you.wav of the list .* is missing"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(StudyError, match=sentence):
            read_evaluation(path)


def test_a_study_holds_to_the_list_that_it_was_made_of(chinese: Path) -> None:
    study = parse({"manifest": "meta.lst", "grid": {"steps.steps": [4]}}, root=chinese)
    found = read_evaluation(chinese / "meta.lst")
    assert study.evaluation == found
    pinned = tomllib.loads(to_toml(study.definition))
    assert pinned["manifest_sha256"] == found.sha256
    assert parse(pinned, root=chinese).utterances == study.utterances
    with (chinese / "meta.lst").open("a", encoding="utf-8") as file:
        file.write("three|\u597d\u3002|prompt-wavs/a.wav|\u597d\u7684\u3002\n")
    with pytest.raises(StudyError, match=r"meta\.lst has changed: its SHA-256 is "):
        parse(pinned, root=chinese)
