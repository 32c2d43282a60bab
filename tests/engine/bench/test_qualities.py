"""What passes against a baseline, and the headline that follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paretone.bench.qualities import Spoken, compared, headline, judged, target
from paretone.bench.voices import Heard
from paretone.measure.limits import FAILS, PASSES, UNDECIDED, Judgement, Margin
from paretone.measure.timing import Interval

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


def test_what_keeps_everything_passes() -> None:
    assert judged(panel(), panel()).words == "passes"
    near = panel(0.072, naturalness=3.9, own=0.79, spread=0.185)
    assert judged(near, panel()).verdict == PASSES


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"edits": 1.0}, "word error rate"),
        ({"naturalness": 3.8}, "naturalness"),
        ({"spread": 0.17}, "pitch range"),
        ({"own": 0.77}, "similarity"),
    ],
)
def test_what_loses_one_thing_fails_by_it(changed: dict[str, float], name: str) -> None:
    found = compared(panel(**changed), panel())
    assert (found["verdict"], found["by"], found["more sentences"]) == (FAILS, name, None)


def test_what_loses_the_spread_over_seeds_fails_by_it() -> None:
    found = compared(panel(0.06), panel())
    assert (found["verdict"], found["by"]) == (FAILS, "spread over seeds")
    assert found["spread kept"] == pytest.approx([0.75, 0.75, 0.75])


def test_a_figure_at_its_limit_is_undecided_however_it_happens_to_lie() -> None:
    other = panel()
    for (at, seed), one in other.heard.items():
        other.heard[at, seed] = replace(one, naturalness=one.naturalness - 0.13 - 0.3 * np.cos(3 * at))
    found = compared(other, panel())
    assert (found["verdict"], found["by"]) == (UNDECIDED, "naturalness")
    assert isinstance(found["more sentences"], int)


def test_few_words_are_no_proof() -> None:
    assert judged(panel(sentences=2), panel(sentences=2)).by(UNDECIDED) == ("word error rate",)


def test_takes_that_only_one_of_the_two_has_do_not_count() -> None:
    more = panel(seeds=SEEDS + 2)
    assert judged(panel(), more) == judged(panel(), panel())


def test_a_spread_that_nobody_could_hear_is_undecided() -> None:
    silent = panel()
    for take, one in silent.heard.items():
        silent.heard[take] = replace(one, curve=np.zeros(0), spread=float("nan"))
    assert judged(silent, panel()).by(UNDECIDED) == ("spread over seeds", "pitch range")
    assert silent.figures["pitch range"] is None


SURE, OPEN, BAD = (
    Judgement({"words": one}) for one in (Margin(1, 0, 2, 9), Margin(1, -1, 3, 9), Margin(-2, -3, -1, 9))
)


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
def test_the_headline_is_a_ratio_in_any_case(ways: list[tuple[float, Judgement]], chosen: float, words: str) -> None:
    assert headline([(ratio(value), found) for value, found in ways]) == (ratio(chosen), words)


def test_a_target_is_met_by_what_passes_only() -> None:
    assert target(ratio(33.5), "passes", 30, "in float32") == "33.5× meets the target of 30× in float32."
    assert target(ratio(29.9), "passes", 30, "in float32") == "29.9× is below the target of 30× in float32."
    assert target(ratio(57), "fails by the words", 30, "in float32") == (
        "The target of 30× in float32 is not met: 57.0× fails by the words."
    )
    assert "57.0× is undecided by the words" in target(ratio(57), OPEN.words, 30, "in float32")
