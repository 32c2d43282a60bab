"""Paired tests of settings on the same sentences, and the takes with the most errors."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from math import comb
from pathlib import Path

import numpy as np
import pytest

from paretone.measure.estimates import picks
from paretone.studies.paired import caution, paired
from paretone.studies.report import to_html
from paretone.studies.results import read, to_json
from paretone.studies.store import DATABASE
from paretone.studies.wording import paired_lines, worst_lines
from tests.engine.command_line import Console
from tests.engine.studies.small import finished, study


def counted(errors: list[int], words: int = 8) -> dict[str, complex]:
    return {f"sentence {number}": complex(one, words) for number, one in enumerate(errors)}


def test_a_rate_against_formulas_written_plainly() -> None:
    one, other = [3, 0, 2, 4, 1, 2, 0, 5], [1, 0, 1, 2, 2, 0, 0, 1]
    found = paired("word_error_rate", counted(one), counted(other))
    assert found is not None
    assert found.difference == pytest.approx((sum(one) - sum(other)) / 64)
    # 5 worse, 1 better, 2 equal: P(at most 1 of 6) twice.
    assert (found.higher, found.lower, found.sentences) == (5, 1, 8)
    assert found.p == pytest.approx(2 * (comb(6, 0) + comb(6, 1)) / 2**6)
    draws = [(np.array(one)[pick].sum() - np.array(other)[pick].sum()) / 64 for pick in picks(8, 1000)]
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(draws, (2.5, 97.5))))
    assert found.words.startswith("Word error rate +15.62 % (") and "5 of 8 sentences worse, 1 better, p = 0.219" in (
        found.words
    )
    swapped = paired("word_error_rate", counted(other), counted(one))
    assert swapped is not None and swapped.difference == -found.difference and swapped.p == found.p


def test_pairing_sees_what_two_intervals_do_not() -> None:
    hard = np.linspace(1, 4.5, 30)
    scores = {str(number): value for number, value in enumerate(hard)}
    lower = {name: value - 0.05 for name, value in scores.items()}
    found = paired("naturalness", lower, scores)
    assert found is not None
    assert found.high is not None and found.high < 0 and found.p == pytest.approx(2 / 2**30)
    assert "30 of 30 sentences worse, 0 better" in found.words, "naturalness is better when higher"


def test_what_cannot_be_tested() -> None:
    assert paired("word_error_rate", counted([1]), {}) is None
    assert paired("real_time_factor", {"a": 1.0}, {"a": 2.0}) is None, "times are compared by their ratios"
    single = paired("word_error_rate", counted([1]), counted([0]))
    assert single is not None and single.low is None and single.p == 1.0
    equal = paired("naturalness", {"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0})
    assert equal is not None and (equal.difference, equal.p) == (0.0, 1.0)
    assert caution([equal]) == "" and caution([equal, equal]).startswith("2 tests, not corrected")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three settings of which the last loses half of the first sentence and all of the second."""
    folder = tmp_path_factory.mktemp("judged") / "small.study"
    chosen = study(seeds=[0, 1])
    finished(folder, chosen)
    texts = [one.text for one in chosen.utterances]
    with closing(sqlite3.connect(folder / DATABASE)) as direct, direct:
        for key, utterance, seed, text in direct.execute("SELECT setting, utterance, seed, text FROM takes").fetchall():
            errors = (2.0, 4.0, 0.0)[texts.index(text)] if key == chosen.candidates[2].key else 0.0
            verdict = [["words", {"edits": errors, "words": 4.0}, "murmur" if errors else text]]
            direct.execute(
                "UPDATE takes SET verdicts = ? WHERE setting = ? AND utterance = ? AND seed = ?",
                (json.dumps(verdict), key, utterance, seed),
            )
    return folder


def test_a_study_says_tests_tail_and_the_worst_takes(judged: Path, console: Console) -> None:
    results = read(judged)
    baseline, same, last = results.settings
    assert results.paired(baseline.key) == ()
    tests = {one.metric: one for one in results.paired(last.key)}
    assert tests["word_error_rate"].difference == pytest.approx(6 / 12)
    assert (tests["word_error_rate"].sentences, tests["word_error_rate"].higher) == (3, 2)
    # One sentence of three has all of its words wrong; half of the words are not above 50 %.
    assert last.value("failed_takes") == pytest.approx(1 / 3)
    assert tests["failed_takes"].difference == pytest.approx(1 / 3)
    against = results.paired(last.key, same.key)
    assert [one.difference for one in against] == [one.difference for one in tests.values()]
    assert [one.error_rate for one in results.worst(last.key)] == [1.0, 1.0, 0.5, 0.5]
    assert results.worst(baseline.key) == ()
    said = "\n".join([*paired_lines(results), *worst_lines(results)])
    assert "against its baseline: Word error rate +50.00 %" in said and "not corrected for their number" in said
    assert "100 %: “Another one.” (" in said and "heard as “murmur”, audio/" in said
    page = to_html(results)
    assert "<h2>Against the baseline</h2>" in page and "<h2>Most errors</h2>" in page
    assert page.split("<h2>Most errors</h2>")[1].count("<audio") == 4
    listed = to_json(results)["settings"][2]
    assert Path(listed["worst"][0]["audio"]).is_file() and listed["paired"][0]["p"] == 0.5
    out = console.out("study", "status", str(judged))
    assert "2 of 3 sentences worse, 0 better, p = 0.5" in out and "Most errors of " in out
