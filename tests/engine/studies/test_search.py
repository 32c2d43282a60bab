"""Searching: Optuna asks, the study answers, and everything is kept."""

from pathlib import Path

import numpy as np
import pytest

from paretone.errors import Cancelled, StudyError
from paretone.studies.results import read
from paretone.studies.running import FINISHED
from paretone.studies.search import answer
from paretone.studies.store import COMPLETE, FAILED, RULED_OUT, Store, StoredTrial
from paretone.studies.study import Study
from paretone.studies.wording import answer_lines
from tests.engine.studies.small import Follower, finished, study

SEARCH = {
    "trials": 14,
    "seed": 3,
    "objectives": ["ops_ratio"],
    "space": {"steps.steps": {"low": 1, "high": 4}, "first_block.threshold": ["off", 0.1, 0.5]},
    "constraint": [{"metric": "log_mel_distance", "at_most": 0.02}],
}


def searching(**changes: object) -> Study:
    return study(grid=None, sentences=["One sentence.", "Another one."], search={**SEARCH, **changes})


def test_the_answer_is_the_best_of_those_that_keep_to_the_constraints(tmp_path: Path) -> None:
    chosen = searching()
    follower = Follower()
    assert finished(tmp_path, chosen, follower) == FINISHED
    # All trials count from the beginning, whatever they will be.
    assert follower.advances[0][1] == chosen.takes == 30
    assert [done for done, _, _ in follower.advances] == sorted(done for done, _, _ in follower.advances)
    assert follower.advances[-1][0] == follower.advances[-1][1]
    found = read(tmp_path)
    complete = [one for one in found.trials if one.state == COMPLETE]
    assert len(complete) == len(found.trials) == 14
    for one in complete:
        setting = found.setting(one.setting)
        assert one.outcome["values"] == [setting.figures["ops_ratio"].value]
        (excess,) = one.outcome["constraints"].values()
        assert excess == pytest.approx(setting.figures["log_mel_distance"].value - 0.02)
        distance = setting.figures["log_mel_distance"]
        expected = "passes" if distance.high <= 0.02 else "fails" if distance.low > 0.02 else "undecided"
        assert one.outcome["verdict"] == expected
    kept = [one for one in complete if one.outcome["verdict"] == "passes"]
    broken = [one for one in complete if one.outcome["verdict"] == "fails"]
    assert kept and broken, "the bound does not divide the space"
    told = answer(chosen.search, found.trials)
    assert (told.kept, told.undecided) == (len(kept), 14 - len(kept) - len(broken))
    assert (told.complete, told.failed, told.ruled_out) == (14, 0, 0)
    assert told.sure and not told.doubt
    best = min(one.outcome["values"][0] for one in kept)
    assert {one.outcome["values"][0] for one in told.trials} == {best}
    # One that breaks it may well be faster; it is no answer.
    assert min(one.outcome["values"][0] for one in broken) < best


def test_what_one_sentence_cannot_decide_is_said_to_be_undecided(tmp_path: Path) -> None:
    """One sentence, voice and seed has no interval: none of the trials is certain to keep to the bound."""
    chosen = study(grid=None, sentences=["One sentence."], search={**SEARCH, "trials": 4})
    assert finished(tmp_path, chosen) == FINISHED
    found = read(tmp_path)
    told = answer(chosen.search, found.trials)
    assert (told.kept, told.undecided) == (0, 4)
    assert told.trials and not told.sure
    assert "of which 0 meet the constraints and 4 may meet them" in told.words
    words = "None is certain to meet them; the best of those that may are shown: more sentences would decide."
    assert words in told.words
    assert told.doubt in answer_lines(chosen.search, found)[1]


def test_studies_of_earlier_versions_are_judged_by_their_values() -> None:
    def trial(number: int, excess: float) -> StoredTrial:
        return StoredTrial(number, {}, str(number), COMPLETE, {"values": [number], "constraints": {"bound": excess}})

    told = answer(searching().search, (trial(1, 0.1), trial(2, -0.1), trial(3, 0.0)))
    assert (told.kept, told.undecided, [one.number for one in told.trials]) == (2, 0, [2])


def test_two_objectives_have_a_front(tmp_path: Path) -> None:
    chosen = searching(objectives=["ops_ratio", "log_mel_distance"], constraint=[], sampler="nsga2", trials=10)
    assert finished(tmp_path, chosen) == FINISHED
    found = read(tmp_path)
    told = answer(chosen.search, found.trials)
    values = np.array([one.outcome["values"] for one in told.trials])
    for index, one in enumerate(values):
        others = np.delete(values, index, axis=0)
        assert not ((others <= one).all(1) & (others < one).any(1)).any()
    assert {one.setting for one in told.trials} <= {one.key for one in found.settings}


def test_a_search_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        finished(tmp_path, searching(), Follower(cancel_after=9))
    with Store(tmp_path) as store:
        before = {one.number: one for one in store.trials()}
    assert any(one.state == COMPLETE for one in before.values())
    follower = Follower()
    assert finished(tmp_path, searching(), follower) == FINISHED
    with Store(tmp_path) as store:
        after = {one.number: one for one in store.trials()}
        cells = store.cells()
    assert len(after) == 14
    # What was running is finished under its own number, with the parameters that it had.
    for number, one in before.items():
        assert (after[number].params, after[number].setting) == (one.params, one.setting)
        assert after[number].state in (COMPLETE, FAILED)
        if one.state == COMPLETE:
            assert after[number] == one
    assert len(cells) == 9 + len(follower.takes)


def test_trials_that_techniques_rule_out_say_why(tmp_path: Path) -> None:
    space = {"first_block.threshold": [0.1, 0.5], "error_curve.threshold": ["off", 0.1, 0.2]}
    assert finished(tmp_path, searching(space=space, trials=12, sampler="random")) == FINISHED
    trials = read(tmp_path).trials
    ruled_out = [one for one in trials if one.state == RULED_OUT]
    assert ruled_out and all("error_curve.threshold" in one.params for one in ruled_out)
    assert all(one.outcome["problem"] for one in ruled_out)
    # They cost nothing, so they are no trials.
    assert sum(one.state == COMPLETE for one in trials) == 12
    told = answer(searching().search, trials)
    assert f"; {len(ruled_out)} more were ruled out by the techniques themselves." in told.words


@pytest.mark.parametrize("axis", ["guidance_free.used", "guidance_free.engaged"], ids=["today", "first edition"])
def test_trials_that_only_the_model_rules_out_are_failures(tmp_path: Path, axis: str) -> None:
    # The small model has no CFG-free weights.
    space = {axis: ["on", "off"], "steps.steps": [2, 3]}
    assert finished(tmp_path, searching(space=space, trials=6, sampler="random")) == FINISHED
    trials = read(tmp_path).trials
    failed = [one for one in trials if one.state == FAILED]
    assert failed and all(one.params[axis] == "on" for one in failed)
    assert all("CFG-free weights" in one.outcome["problem"] for one in failed)
    assert any(one.state == COMPLETE for one in trials)


def test_a_setting_without_its_metric_is_a_trial_that_failed(tmp_path: Path) -> None:
    finished(tmp_path, searching(objectives=["speaker_similarity"], constraint=[], trials=3))
    trials = read(tmp_path).trials
    assert [one.state for one in trials] == [FAILED] * 3
    assert trials[0].outcome["problem"] == "SIM-o could not be measured"
    assert answer(searching().search, trials).trials == ()


def test_trials_whose_option_has_no_baseline_are_judged_by_themselves(tmp_path: Path) -> None:
    space = {"steps": {"low": 3, "high": 5}, "first_block.threshold": [0.1, 0.5]}
    bound = [{"metric": "ops_ratio", "at_most": 0.9}]
    assert finished(tmp_path, searching(trials=3, space=space, constraint=bound)) == FINISHED
    assert {one.state for one in read(tmp_path).trials} == {COMPLETE}


def test_without_optuna_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(StudyError, match=r"pip install 'paretone\[search\]'"):
        finished(tmp_path, searching())
