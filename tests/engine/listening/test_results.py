"""Results of listening tests, from trials whose outcome is known."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from paretone.listening import results, statistics, trials
from paretone.listening.results import ListeningScore, listened
from paretone.listening.statistics import TRIALS, Staircase
from paretone.studies.study import GRID, Candidate
from tests.engine.listening import listeners
from tests.engine.listening.listeners import BASELINE, FAST, LOW, MID, mushra_trial, preference_trial, ranking_session

OTHER = replace(FAST, key="0" * 16, title="Step pruning: 7 steps")


def abx_session(name: str, hits: int, planned: int = 16, **more) -> list:
    made = []
    for number in range(planned):
        x = number % 2
        made.append(listeners.abx_trial(name, number + 1, x, x if number < hits else 1 - x, planned, **more))
    return made


SCALE = tuple(np.linspace(0.0, 2.0, 9).tolist())
"""log2 of speed-ups from 1 to 4."""


def staircase_session(scale: Sequence[float], heard_from: float, listener: str = "l1", seed: int = 2) -> list:
    """Of a listener who hears everything from a value on, and guesses below it."""
    stairs, chance, made = Staircase(len(scale)), np.random.default_rng(seed), []
    for number in range(1, TRIALS + 1):
        place = stairs.place
        right = scale[place] >= heard_from or bool(chance.random() < 0.5)
        made.append(listeners.staircase_trial(f"s-{listener}", number, place, right, scale, TRIALS, listener))
        stairs.answer(right)
    return made


def test_a_staircase_finds_from_where_on_it_was_heard() -> None:
    found = results.result(staircase_session(SCALE, heard_from=1.0))
    assert (found.reference, found.titles[0], found.titles[-1]) == ("baseline", "place 1", "place 9")
    assert found.scale == SCALE
    ((listener, heard),) = found.noticeable
    assert listener == "l1" and heard == found.median
    assert heard.low < 1.0 < heard.high + 0.25 and 0.6 < heard.value < 1.3, "between the last guessed and first heard"
    assert sum(trials for _, trials in found.right) == TRIALS
    assert all(right == trials for right, trials in found.right[4:]), "what is heard is told apart"


def test_listeners_of_one_row_are_put_together_and_it_has_no_score(tmp_path: Path) -> None:
    two = [*staircase_session(SCALE, 1.0), *staircase_session(SCALE, 1.5, listener="l2")]
    other_row = staircase_session(SCALE[:-1], 1.0, listener="l3")
    assert sorted(len(one) for one in results.comparisons([*two, *other_row])) == [TRIALS, 2 * TRIALS]
    for one in two:
        trials.append(one, tmp_path)
    read = trials.read(tmp_path)
    assert not read.problems and [one.answer for one in read.trials] == [one.answer for one in two]
    assert results.scores(tmp_path) == ()


@pytest.mark.parametrize("similarity", [False, True])
def test_opinions_are_means_over_listeners_and_are_paired_within_sentences(similarity: bool, tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    sessions = []
    for number in range(8):
        strict = number % 2  # Listeners use the scale differently; both settings suffer alike.
        votes = [(5 - strict, 4 - strict - int(chance.random() < 0.3)) for _ in range(6)]
        sessions += listeners.mos_session(votes, similarity, f"m{number}", f"l{number}")
    found = results.result(sessions)
    own = [[one.answer["vote"] for one in sessions if one.order[-1] == place] for place in (0, 1)]
    assert [one.condition for one in found.summaries] == [BASELINE.title, FAST.title]
    assert [one.mean.mean for one in found.summaries] == pytest.approx([np.mean(own[0]), np.mean(own[1])])
    (difference,) = found.differences
    assert difference.difference.mean == pytest.approx(np.mean(own[1]) - np.mean(own[0])) and difference.p < 0.001
    mean = found.summaries[0].mean
    # Each listener always votes alike, so only the choice of eight listeners is uncertain: σ = 0.5/√8.
    assert mean.high - mean.low == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(8), rel=0.15)
    assert (found.votes, found.listeners) == (96, 8)
    for one in sessions:
        trials.append(one, tmp_path)
    assert not trials.read(tmp_path).problems
    scored = {one.setting: one for one in results.scores(tmp_path)}
    assert set(scored) == {BASELINE.key, FAST.key}, "the voice's recording is no setting"
    assert scored[FAST.key].method == sessions[0].method and scored[FAST.key].mean == found.summaries[1].mean.mean
    assert scored[FAST.key].candidate == listeners.REDUCED.bare.fingerprint


def test_a_ranking_puts_the_preferred_first_whoever_was_heard_first(tmp_path: Path) -> None:
    found = results.result(ranking_session((0.0, 1.0, -1.0), rounds=10))
    assert [title for title, _ in found.ranked] == ["place 2", "place 1", "place 3"]
    assert found.comparisons == 30 and found.ties == 0 and found.first + found.second == 30
    assert found.ranked[0][1].best > 0.95 and found.listeners == 1
    two = [*ranking_session((0.0, 1.0, -1.0), 4), *ranking_session((0.0, 1.0, -1.0), 4, "s2", "l2", seed=8)]
    other = ranking_session((0.0, 1.0, -1.0, 2.0), 2, "s3")
    assert sorted(len(one) for one in results.comparisons([*two, *other])) == [12, 24]
    assert results.result(two).listeners == 2
    for one in two:
        trials.append(one, tmp_path)
    assert not trials.read(tmp_path).problems and results.scores(tmp_path) == (), "it judges them together"
    tied = [replace(one, answer={"vote": 0}) for one in ranking_session((0.0, 1.0, -1.0), 4)]
    assert results.result(tied).ties == 12 and all(one.best < 0.5 for _, one in results.result(tied).ranked)


@pytest.mark.parametrize(
    ("make", "damage"),
    [
        (lambda: listeners.mos_session([(4, 3)], similarity=True), {"order": [2, 2]}),
        (lambda: listeners.mos_session([(4, 3)], similarity=True), {"order": []}),
        (lambda: listeners.mos_session([(4, 3)], similarity=True), {"answer": {"vote": 6}}),
        (lambda: ranking_session((0.0, 1.0, -1.0), 1), {"order": [0, 0]}),
        (lambda: ranking_session((0.0, 1.0, -1.0), 1), {"answer": {"vote": 2}}),
        (lambda: staircase_session(SCALE, 1.0), {"order": [1, 0, 2]}),
        (lambda: staircase_session(SCALE, 1.0), {"answer": {"said": 2, "scale": list(SCALE)}}),
        (lambda: staircase_session(SCALE, 1.0), {"answer": {"said": 0, "scale": list(SCALE[:-1])}}),
    ],
)
def test_damaged_trials_are_refused(make: Callable[[], list], damage: dict) -> None:
    data = json.loads(json.dumps(asdict(make()[0])))
    assert trials.from_json(data).method == data["method"]
    with pytest.raises((ValueError, IndexError)):
        trials.from_json({**data, **damage})


def test_an_abx_session_is_judged_exactly() -> None:
    found = results.result(abx_session("s", 12))
    assert (found.hits, found.trials, found.needed, found.listeners) == (12, 16, 12, 1)
    assert found.p == pytest.approx(0.0384, abs=1e-4) and found.heard
    assert (found.rate.low, found.rate.high) == statistics.exact_interval(12, 16)
    assert found.titles == ("baseline", "DiTReducio δ = 0.2")
    missed = results.result(abx_session("s", 11))
    assert not missed.heard
    assert missed.smallest_detectable == pytest.approx(0.81, abs=0.01)


def test_sessions_of_several_listeners_are_put_together_and_incomplete_ones_left_out() -> None:
    broken_off = abx_session("s3", 16, listener="l3")[:15]
    found = [*abx_session("s1", 12, listener="l1"), *abx_session("s2", 8, listener="l2"), *broken_off]
    (only,) = results.comparisons(found)
    together = results.result(only)
    assert (together.hits, together.trials, together.listeners) == (20, 32, 2)
    assert together.rate.low < 20 / 32 < together.rate.high


def test_votes_are_turned_the_right_way_round_and_repeats_only_checked() -> None:
    answers = [
        # The second condition is better by 2, whichever comes first.
        preference_trial("s", 1, 2, (0, 1), planned=5, text="one"),
        preference_trial("s", 2, -2, (1, 0), planned=5, text="two"),
        preference_trial("s", 3, 0, (1, 0), planned=5, text="three"),
        preference_trial("s", 4, -2, (1, 0), planned=5, text="one", repeat=True),
        preference_trial("s", 5, -2, (0, 1), planned=5, text="two", repeat=True),
    ]
    found = results.result(answers)
    assert found.mean.mean == pytest.approx(4 / 3)
    assert (found.sign.better, found.sign.worse, found.sign.ties) == (2, 0, 1)
    assert (found.first, found.second) == (1, 1), "for what was heard first, and second"
    assert (found.repeats, found.consistent) == (2, 1) and found.graded


def test_who_always_votes_for_the_first_shows_an_order_bias_and_no_preference() -> None:
    orders = [(0, 1) if number % 2 else (1, 0) for number in range(12)]
    answers = [preference_trial("s", at + 1, -1, order, planned=12, text=f"{at}") for at, order in enumerate(orders)]
    found = results.result(answers)
    assert found.mean.mean == 0 and found.order_p < 0.001 and found.sign.p == 1.0


def test_mushra_leaves_out_who_fails_the_screening_and_says_so() -> None:
    found = []
    for listener, hidden in (("good", 100), ("fair", 95), ("deaf", 70)):
        for item in range(8):
            ratings, said = (hidden, 80 + item % 3, 10, 40), {"listener": listener, "text": f"Sentence {item}."}
            found.append(mushra_trial(f"s-{listener}", item + 1, ratings, planned=8, **said))
    outcome = results.result(results.comparisons(found)[0])
    assert [one.condition for one in outcome.summaries] == ["Hidden reference", FAST.title, LOW.title, MID.title]
    assert [one.mean.n for one in outcome.summaries] == [16] * 4
    assert {one.listener: one.excluded for one in outcome.screenings} == {"deaf": True, "fair": False, "good": False}
    (difference,) = outcome.differences
    assert difference.than == "Hidden reference" and difference.difference.high < 0 and difference.p < 0.01
    assert outcome.pages == 24


def test_settings_that_joined_later_are_held_against_the_same_reference() -> None:
    first = mushra_trial("s1", 1, (100, 60, 10, 40))
    second = mushra_trial("s2", 1, (100, 80, 10, 40), listener="l2", conditions=(BASELINE, OTHER, LOW, MID))
    (only,) = results.comparisons([first, second])
    outcome = results.result(only)
    assert [one.condition for one in outcome.summaries][1:3] == [FAST.title, OTHER.title]
    assert [one.mean.n for one in outcome.summaries] == [2, 1, 1, 2, 2]
    # Holm: two tests.
    assert all(one.p == 1.0 for one in outcome.differences)


def test_scores_are_what_the_trade_off_view_draws(tmp_path: Path) -> None:
    for one in abx_session("s1", 12):
        trials.append(one, tmp_path)
    # Here the accelerated one stands first; its score is how much better it is than the baseline.
    swapped = {"planned": 4, "conditions": (FAST, BASELINE)}
    for number in range(4):
        trials.append(preference_trial("s2", number + 1, 1, text=f"{number}", **swapped), tmp_path)
    trials.append(mushra_trial("s3", 1, (100, 60, 10, 40)), tmp_path)
    trials.append(preference_trial("s4", 1, 3, planned=1, conditions=(FAST, OTHER)), tmp_path)
    found = {(one.setting, one.method): one for one in results.scores(tmp_path)}
    bare = listeners.PLAIN.with_technique(replace(listeners.REDUCED.technique("ditreducio"), artefact=""))
    candidate = Candidate(bare, GRID).key
    interval = statistics.exact_interval(12, 16)
    assert found[FAST.key, "abx"] == ListeningScore(FAST.key, "abx", 0.75, *interval, 16, candidate)
    assert found[FAST.key, "ccr"] == ListeningScore(FAST.key, "ccr", -1.0, -1.0, -1.0, 4, candidate)
    assert found[FAST.key, "mushra"].mean == 60 and found[BASELINE.key, "mushra"].mean == 100
    assert len(found) == 4, "anchors have no score, and neither have two accelerated ones against each other"
    # A study's report has those of its settings.
    shown = {(one.candidate, one.method): one.mean for one in listened(tmp_path)}
    assert shown[candidate, "abx"] == 0.75 and shown[candidate, "mushra"] == 60
    assert shown[Candidate(listeners.PLAIN, GRID).key, "mushra"] == 100
    assert listened(tmp_path / "nothing") == ()
