"""The bench of how bundled models sound: really spoken and judged, and how its figures are made of takes."""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.bench import voices
from paretone.bench.qualities import Spoken, compared, headline, judged, target
from paretone.bench.voices import DEFAULT, FLOOR, Heard
from paretone.errors import PlainError
from paretone.measure.estimates import FAILS, PASSES, UNDECIDED, Margin, Margins
from paretone.measure.evaluation.judges import judge_named
from paretone.measure.timing import Interval
from paretone.models import catalogue
from paretone.training.natural_teacher import decoder_copy
from tests.engine.command_line import Console
from tests.workload import only_in_full

pytestmark = pytest.mark.usefixtures("short_prompts")

MODEL, WAY = "megatts3-mini", "steps=2,intelligibility=1,similarity=1"
SPEAKERS = tuple(catalogue.voice(one) for one in ("anna", "bella"))


def take(naturalness: float, edits: float = 0) -> Heard:
    curve = np.log(200 + 20 * np.sin(np.arange(60) / 9 + naturalness))
    return Heard(edits, 5, naturalness, 0.8, {"bella": 0.6, "clara": 0.8}, 0.2, curve, 1.0, 0.5)


@only_in_full("speech")
@pytest.mark.slow
def test_models_are_heard_beside_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console) -> None:
    texts = ("The rice was good.", "They went home today.")
    try:
        decoder_copy(texts[0], catalogue.voice())
    except PlainError as error:
        pytest.skip(str(error))
    if problem := judge_named("naturalness").problem() or judge_named("voice").problem():
        pytest.skip(problem)
    monkeypatch.setattr(voices, "sentences", lambda: texts)
    report = console.data("bench", "voices", "--model", MODEL, "--way", WAY, "--keep", tmp_path / "wav", "--json")
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
    row = voices.row("worse", worse, floor, SPEAKERS)
    assert row["to the copy"] == pytest.approx(-0.45) and row["standard error"] == pytest.approx(0)
    assert row["diversity"] > 0
    assert voices.row("one take each", dict(floor), floor, SPEAKERS)["diversity"] is None
    assert not {"to the copy", "diversity"} & voices.row(FLOOR, floor, floor, SPEAKERS).keys()


def test_words_are_of_all_takes_and_likeness_to_others_needs_others() -> None:
    takes = {(0, 0): take(4, edits=1), (0, 1): take(4), (1, 0): take(4, edits=3), (1, 1): take(4)}
    assert voices.row("all", takes, takes, SPEAKERS)["word errors"] == pytest.approx(4 / 20)
    alone = {(0, 0): replace(take(4.0), alike={})}
    row = voices.row("alone", alone, alone, SPEAKERS)
    assert row["other voices"] is None and row["anna"] == 4
    assert row["bella"] is None, "of a voice that did not speak"
    assert voices.row("two", two := alone | {(1, 0): take(3.0)}, two, SPEAKERS)["other voices"] == pytest.approx(0.7)


def test_sentences_and_voices_can_be_ones_own(tmp_path: Path, console: Console) -> None:
    (tmp_path / "own.txt").write_text("One sentence.\n\n")
    own = console.refusal("bench", "voices", "--text-file", str(tmp_path / "own.txt"))
    assert "There must be two sentences or more" in own
    assert "There is no text" in console.refusal("bench", "voices", "--text-file", str(tmp_path / "none.txt"))
    assert "nobody" in console.refusal("bench", "voices", "--voice", "nobody")
    assert "--sentences: must be a whole number from 2" in console.refusal("bench", "voices", "--sentences", "1")
    found = voices.speakers(argparse.Namespace(model=MODEL, folder="", voice=["bella", "anna"]))
    assert [one.id for one in found] == ["bella", "anna"]


SENTENCES, SEEDS = 30, 4


def curve(spread: float, seed: int) -> np.ndarray:
    """Voiced frames of a take whose pitch differs from that of other seeds by ``spread``."""
    return np.full(100, 5.0) + spread * (-1.0) ** seed


def panel(over_seeds: float = 0.08, sentences: int = SENTENCES, seeds: int = SEEDS, **figures: float) -> Spoken:
    """Takes that sentence by sentence differ a little, as those of every way do."""
    usual = {"edits": 0.0, "words": 20.0, "naturalness": 4.0, "own": 0.8, "spread": 0.2, **figures}
    scatter = {"naturalness": 0.2, "own": 0.01, "spread": 0.01}
    found = Spoken()
    for at in range(sentences):
        moved = {name: value + scatter.get(name, 0.0) * np.sin(at) for name, value in usual.items()}
        for seed in range(seeds):
            found.heard[at, seed] = Heard(alike={}, curve=curve(over_seeds, seed), **moved)
            found.mels[at, seed] = np.zeros((4, 2), np.float32)
    return found


def test_what_keeps_everything_passes_and_takes_of_one_of_the_two_do_not_count() -> None:
    assert judged(panel(), panel()).words == "passes"
    assert judged(panel(0.072, naturalness=3.9, own=0.79, spread=0.185), panel()).verdict == PASSES
    assert judged(panel(), panel(seeds=SEEDS + 2)) == judged(panel(), panel())
    assert compared(panel(0.06), panel())["spread kept"] == pytest.approx([0.75, 0.75, 0.75])


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"edits": 1.0}, "word error rate"),
        ({"naturalness": 3.8}, "naturalness"),
        ({"spread": 0.17}, "pitch range"),
        ({"own": 0.77}, "similarity"),
        ({"over_seeds": 0.06}, "spread over seeds"),
    ],
)
def test_what_loses_one_thing_fails_by_it(changed: dict[str, float], name: str) -> None:
    found = compared(panel(**changed), panel())
    assert (found["verdict"], found["by"], found["more sentences"]) == (FAILS, name, None)


def test_a_figure_at_its_limit_is_undecided_however_it_happens_to_lie() -> None:
    other = panel()
    for (at, seed), one in other.heard.items():
        other.heard[at, seed] = replace(one, naturalness=one.naturalness - 0.13 - 0.3 * np.cos(3 * at))
    found = compared(other, panel())
    assert (found["verdict"], found["by"]) == (UNDECIDED, "naturalness")
    assert isinstance(found["more sentences"], int)


def test_few_words_and_a_spread_that_nobody_could_hear_are_undecided() -> None:
    silent = panel()
    for take, one in silent.heard.items():
        silent.heard[take] = replace(one, curve=np.zeros(0), spread=float("nan"))
    assert judged(silent, panel()).by(UNDECIDED) == ("spread over seeds", "pitch range")
    assert silent.figures["pitch range"] is None
    assert judged(panel(sentences=2), panel(sentences=2)).by(UNDECIDED) == ("word error rate",)


SURE, OPEN, BAD = (Margins({"words": Margin(*one, 9)}) for one in ((1, 0, 2), (1, -1, 3), (-2, -3, -1)))


def ratio(value: float) -> Interval:
    return Interval(value, value - 1, value + 1)


@pytest.mark.parametrize(
    ("ways", "chosen", "words"),
    [
        ([(57, OPEN), (29, SURE), (14, SURE)], 29, "passes"),
        ([(57, OPEN), (29, BAD), (14, OPEN)], 57, "undecided by the words: 27 more sentences would decide"),
        ([(57, BAD), (29, BAD)], 57, "fails by the words"),
    ],
)
def test_the_headline_is_a_ratio_in_any_case(ways: list[tuple[float, Margins]], chosen: float, words: str) -> None:
    assert headline([(ratio(value), found) for value, found in ways]) == (ratio(chosen), words)


def test_a_target_is_met_by_what_passes_only() -> None:
    assert "33.5× meets the target of 30× in float32" in target(ratio(33.5), "passes", 30, "in float32")
    assert "29.9× is below" in target(ratio(29.9), "passes", 30, "in float32")
    assert "1.98× is below the target of 2×" in target(ratio(1.98), "passes", 2, "in float32")
    assert "not met: 57.0× fails by the words" in target(ratio(57), "fails by the words", 30, "in float32")
    assert "57.0× is undecided by the words" in target(ratio(57), OPEN.words, 30, "in float32")
