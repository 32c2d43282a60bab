"""``paretone compare --judge``: both sides and the reference speech before the same judge."""

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from paretone.commands.compare import parts_line
from paretone.commands.terminal import Terminal
from paretone.errors import PlainError
from paretone.models import catalogue
from paretone.studies.evaluation_sets import read_evaluation
from paretone.training.natural_teacher import NaturalTeacher
from tests.engine.command_line import Console
from tests.engine.studies import small

SIDE = "steps=4,cross_fade=0,technique=steps:steps=2"
TEXTS = "The birch canoe slid on the smooth planks.\nGlue the sheet to the dark blue background.\n"


@pytest.fixture(autouse=True)
def _small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretone.models.load_model", small.load)


@pytest.mark.skipif(find_spec("hibari") is None, reason="hibari-tts speaks the reference")
def test_noise_is_judged_worse_than_the_reference_speech(tmp_path: Path, console: Console) -> None:
    (tmp_path / "texts.txt").write_text(TEXTS, encoding="utf-8")
    more = ["--text-file", str(tmp_path / "texts.txt"), "--repeats", "1", "--judge", "words"]
    arguments = ["compare", "baseline", SIDE, *more]
    data = console.data(*arguments, "--json")
    judged = data["judged"]["word_error_rate"]
    # The small model speaks noise.
    assert min(judged[side]["value"] for side in "ab") >= 0.5
    assert judged["reference"]["value"] <= 0.2
    assert judged["reference"]["clusters"] == 2
    test = data["judged"]["word_error_rate"]["paired"]
    assert test["difference"] == pytest.approx(judged["b"]["value"] - judged["a"]["value"])
    assert test["sentences"] == 2 and 0 <= test["p"] <= 1
    tail = data["judged"]["failed_takes"]
    assert tail["worst"]["a"][0]["error_rate"] == max(one["error_rate"] for one in tail["worst"]["a"])
    assert data["mel_cepstral_distortion"] > 0
    assert data["a"]["silence"] is not None
    out = console.out(*arguments)
    assert "Word error rate: A " in out and "reference speech 0" in out and "; n = 2." in out
    assert "B against A on the same texts: Word error rate" in out and "Most errors of A: text " in out
    assert "exact two-sided sign test" in out
    assert "B against A: Log-mel distance " in out and ", Mel-cepstral distortion " in out
    for side in ("a", "b"):
        spread = data["intervals"][side]["real_time_factor"]
        assert spread["low"] < data[side]["real_time_factor"] < spread["high"]
        assert all(spread["low"] <= one[side]["real_time_factor"] <= spread["high"] for one in data["texts"])
    interval = data["intervals"]["beside"]["mel_cepstral_distortion"]
    assert interval["low"] <= data["mel_cepstral_distortion"] <= interval["high"]


def test_the_decoder_is_told_in_parts_where_it_has_them() -> None:
    row = {"text_seconds": 0.1, "backbone_seconds": 2.0, "decoder_seconds": 0.5}
    assert parts_line({**row, "flow_seconds": None, "vocoder_seconds": None}).endswith("decoder 0.500 s.")
    parts = parts_line({**row, "flow_seconds": 0.4, "vocoder_seconds": 0.1})
    assert parts.endswith("decoder 0.500 s (flow 0.400 s, vocoder 0.100 s).")


def test_a_single_run_has_no_interval(console: Console) -> None:
    arguments = ["compare", "baseline", SIDE, "--text", "One word."]
    out = console.out(*arguments, "--repeats", "1")
    assert "in a single run: without an interval, no difference in speed can be claimed" in out
    assert "95 % interval" not in out
    assert all("(" not in line for line in out.splitlines()[2:4]), "neither side has one"
    data = console.data(*arguments, "--repeats", "2", "--json")
    assert data["intervals"]["a"]["real_time_factor"]["low"] <= data["a"]["real_time_factor"], "over the repeats"
    assert data["intervals"]["beside"]["log_mel_distance"] is None, "every repeat sounds alike"
    assert data["a"]["backbone_time_factor"] == pytest.approx(data["texts"][0]["a"]["backbone_time_factor"])
    assert data["a"]["first_audio_seconds"] <= data["a"]["first_audio_p90"], "of two runs, after a warm-up"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_texts_that_were_finished_before_ctrl_c_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    progress = Terminal.progress

    def interrupted(terminal: Terminal, done: int, total: int, left: float | None = None) -> None:
        if done == total - 1:  # Within the second text.
            os.kill(os.getpid(), signal.SIGINT)
        progress(terminal, done, total, left)

    monkeypatch.setattr(Terminal, "progress", interrupted)
    (tmp_path / "texts.txt").write_text(TEXTS, encoding="utf-8")
    more = ["--text-file", str(tmp_path / "texts.txt"), "--repeats", "2", "--judge", "words", "--json"]
    written = console("compare", "baseline", SIDE, *more)
    data = written.data
    said = "Cancelled after 1 of 2 texts: the figures are of it; nothing was judged."
    assert (written.code, data["error"], data["exit_code"], data["judged"]) == (130, said, 130, {})
    assert said in written.err.splitlines()
    assert [one["text"] for one in data["texts"]] == TEXTS.splitlines()[:1]


def test_figures_are_kept_when_a_judge_is_interrupted_or_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    arguments = ["compare", "baseline", SIDE, "--text", "One word."]
    more = ["--repeats", "1", "--judge", "words", "--out", str(tmp_path), "--json"]
    ended: list[BaseException] = [KeyboardInterrupt(), PlainError("No judge.")]

    def ends(name: str) -> NoReturn:
        raise ended.pop(0)

    monkeypatch.setattr("paretone.commands.compare.judge_named", ends)
    figures = "after 1 of 1 texts: the figures are of it; nothing was judged."
    for said, code in ((f"Cancelled {figures}", 130), (f"Failed {figures} No judge.", 1)):
        done = console(*arguments, *more)
        data = done.data
        assert (done.code, data["error"], data["judged"]) == (code, said, {})
        assert data["speed_up"]["median"] > 0
        assert data["files"] and all(Path(one).is_file() for one in data["files"])


def test_without_reference_speech_it_says_so(monkeypatch: pytest.MonkeyPatch, console: Console) -> None:
    monkeypatch.setitem(sys.modules, "hibari", None)
    monkeypatch.setattr("paretone.training.natural_teacher.shared_teacher", NaturalTeacher)
    said = console.out("compare", "baseline", SIDE, "--text", "One word.", "--repeats", "1", "--judge", "words")
    assert "no reference speech to show the judge's floor" in said


def test_an_evaluation_set_gives_texts_voices_and_the_floor(tmp_path: Path, console: Console) -> None:
    """The list is of two sentences of the first voice, each with its recording: Seed-TTS's format."""
    voice, path = catalogue.voices("f5-mini")[0], tmp_path / "meta.lst"
    texts = TEXTS.splitlines()[0], voice.transcript
    lines = [f"{number}|{voice.transcript}|{voice.audio}|{text}|{voice.audio}\n" for number, text in enumerate(texts)]
    path.write_text("".join(lines), encoding="utf-8")
    more = ["--set", str(path), "--repeats", "1", "--judge", "words"]
    data = console.data("compare", "baseline", SIDE, *more, "--json")
    assert [one["text"] for one in data["texts"]] == [one.text for one in read_evaluation(path).rows]
    assert data["evaluation_set"].startswith("meta.lst: 2 lines, ") and len(data["sha256"]) == 64
    # The list's recordings say the second text.
    assert 0 < data["judged"]["word_error_rate"]["reference"]["value"] < 1
    assert data["judged"]["failed_takes"]["reference"]["value"] == 0.5
    sides = "compare", "baseline", SIDE
    assert console.out(*sides, "--set", str(path), "--count", "1", "--repeats", "1").startswith("meta.lst: 2 lines, ")
    assert "--set has its own texts and voices" in console.refusal(*sides, "--set", str(path), "--text", "No.")
    assert "belong to an evaluation set; give it with --set" in console.refusal(*sides, "--count", "1")
