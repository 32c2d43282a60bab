"""The bench of how bundled models sound: really spoken and judged, and how its figures are made of takes."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone import cli
from paretone.bench import voices
from paretone.bench.voices import DEFAULT, FLOOR, Heard
from paretone.errors import PlainError
from paretone.measure.evaluation.judges import judge_named
from paretone.models import catalogue
from paretone.training.natural_teacher import decoder_copy
from tests.prompts import short_prompts  # noqa: F401

pytestmark = pytest.mark.usefixtures("short_prompts")

MODEL, WAY = "megatts3-mini", "steps=2,intelligibility=1,similarity=1"


def take(naturalness: float, edits: float = 0) -> Heard:
    curve = np.log(200 + 20 * np.sin(np.arange(60) / 9 + naturalness))
    return Heard(edits, 5, naturalness, 0.8, {"bella": 0.6, "clara": 0.8}, 0.2, curve, 1.0, 0.5)


@pytest.mark.slow
def test_a_model_is_heard_beside_the_decoders_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ("The rice was good.", "They went home today.")
    try:
        decoder_copy(texts[0], catalogue.voice())
    except PlainError as error:
        pytest.skip(str(error))
    if problem := judge_named("naturalness").problem() or judge_named("voice").problem():
        pytest.skip(problem)
    monkeypatch.setattr(voices, "sentences", lambda: texts)
    given = ["bench", "voices", "--model", MODEL, "--way", WAY, "--keep", str(tmp_path / "wav"), "--json"]
    assert cli.main(given) == 0
    report = json.loads(capsys.readouterr().out)
    floor, default, way = report["rows"]
    assert [floor["speech"], default["speech"], way["speech"]] == [FLOOR, DEFAULT, WAY]
    assert [row["takes"] for row in report["rows"]] == [2, 4, 4]
    assert "to the copy" not in floor and report["headline"] == default["to the copy"]
    for row in report["rows"]:
        assert 1 <= row["naturalness"] <= 5
        assert row["naturalness"] == pytest.approx((row["anna"] + row["bella"]) / 2)
        assert row["clara"] is None and row["clara, Hz"] is None
        assert 0.9 < row["anna, formants"] < row["bella, formants"] < 1.1, "the voices are told apart by their formants"
        assert 100 < row["anna, Hz"] < 300
    for row in (default, way):
        assert row["RTF"] > 0 and row["diversity"] > 0
        assert row["naturalness"] - floor["naturalness"] == pytest.approx(row["to the copy"])
    kept = sorted(path.name for path in (tmp_path / "wav").glob("*.wav"))
    assert len(kept) == 10 and kept[0] == f"00-anna-{DEFAULT}-0.wav"
    assert soundfile.info(tmp_path / "wav" / kept[0]).samplerate == 24_000


def test_naturalness_is_compared_sentence_by_sentence() -> None:
    floor = {(at, 0): take(4.0 - at) for at in range(3)}
    worse = {(at, seed): take(3.5 - at + 0.1 * seed) for at in range(3) for seed in range(2)}
    apart = voices._apart(worse, floor)
    assert apart.value == pytest.approx(-0.45)
    assert (apart.low, apart.high) == pytest.approx((-0.45, -0.45))
    assert voices._standard_error(worse, floor) == pytest.approx(0)
    assert voices._diversity(worse) > 0
    assert voices._diversity(floor) is None


def test_where_one_voice_speaks_there_is_no_likeness_to_others() -> None:
    alone = replace(take(4.0), alike={})
    assert voices._mean({(0, 0): alone}, "others") is None
    assert voices._mean({(0, 0): alone, (1, 0): take(3.0)}, "others") == pytest.approx(0.7)
    assert voices._mean({}, "naturalness") is None, "of a voice that did not speak"


def test_word_errors_are_of_all_words() -> None:
    takes = {(0, 0): take(4, edits=1), (0, 1): take(4), (1, 0): take(4, edits=3), (1, 1): take(4)}
    assert voices._words(takes, 2).value == pytest.approx(4 / 20)


def test_the_sentences_alternate_and_none_is_missing() -> None:
    assert voices.sentences()[:2] == (catalogue.harvard_sentences()[0], catalogue.unseen_sentences()[0])
    assert sorted(voices.sentences()) == sorted(catalogue.judged_sentences())


def test_one_sentence_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.txt").write_text("One.", encoding="utf-8")
    assert cli.main(["bench", "voices", "--text-file", str(tmp_path / "one.txt")]) != 0
    assert "two sentences or more" in capsys.readouterr().err
    assert cli.main(["bench", "voices", "--sentences", "1"]) != 0
    assert "--sentences: must be a whole number from 2" in capsys.readouterr().err


def test_sentences_and_voices_can_be_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.txt").write_text("One sentence.\n\nAnother one.\n")
    assert voices._texts(str(tmp_path / "own.txt")) == ("One sentence.", "Another one.")
    assert cli.main(["bench", "voices", "--text-file", str(tmp_path / "none.txt")]) != 0
    assert "could not be read" in capsys.readouterr().err
    assert cli.main(["bench", "voices", "--voice", "nobody"]) != 0
    assert "nobody" in capsys.readouterr().err
    found = voices._speakers(argparse.Namespace(model=MODEL, folder="", voice=["bella", "anna"]))
    assert [one.id for one in found] == ["bella", "anna"]
