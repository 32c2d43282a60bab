"""Results computed from a study's takes."""

import base64
import csv
import html
import io
import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
import pytest

from paretone.measure.estimates import Estimate, picks
from paretone.measure.evaluation.judges import Verdict
from paretone.measure.metrics import metric
from paretone.setting.plan import NOTHING_SKIPPED
from paretone.studies import wording
from paretone.studies.paired import caution, paired
from paretone.studies.report import rows_of_takes, to_csv, to_html, to_latex
from paretone.studies.results import figures_of, front, margins_of, read, to_json
from paretone.studies.space import Constraint
from paretone.studies.store import DATABASE, Store
from paretone.studies.study import BASELINE, MeasureReference, ReferenceMeasured
from paretone.studies.wording import REFERENCE, doubt_lines, figure_text, reference_lines, setting_title
from tests.engine.command_line import Console
from tests.engine.studies.small import finished, sql, study

JUDGED = "UPDATE takes SET verdicts = ? WHERE setting = ? AND utterance = ? AND seed = ? AND round = ?"
OF_THE_SECOND = "setting = (SELECT key FROM settings WHERE place = 1)"


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    """A study whose times and verdicts are known, to change at will."""
    return shutil.copytree(measured, tmp_path / "study")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("measured")
    chosen = study(seeds=[0, 1], rounds=3, setting=[{"name": "Quick", "techniques": {"steps": {"steps": 1}}}])
    finished(tmp_path, chosen)
    keys = [one.key for one in chosen.candidates]
    texts = [one.text for one in chosen.utterances]
    with closing(sqlite3.connect(tmp_path / DATABASE)) as direct, direct:
        rows = direct.execute("SELECT setting, utterance, seed, round, text, measurements FROM takes").fetchall()
        for key, utterance, seed, turn, text, measurements in rows:
            place, sentence = keys.index(key), texts.index(text)
            seconds = 4.0 / (place + 1) * (1 + 0.1 * sentence) * (1 + (turn == 2))
            measured = {**json.loads(measurements), "seconds": seconds, "audio_seconds": 2.0}
            measured |= {"backbone_seconds": seconds / 2, "first_audio_seconds": seconds / 4}
            verdict = [["words", {"edits": float(place * (sentence == 0)), "words": 5.0}, "heard"]] if turn == 0 else []
            given = json.dumps(measured), seconds, json.dumps(verdict), key, utterance, seed, turn
            direct.execute(JUDGED.replace("SET", "SET measurements = ?, clock_seconds = ?,"), given)
    return tmp_path


def test_a_limit_of_a_percentile_is_of_the_figure_that_is_shown(folder: Path) -> None:
    baseline, other, *_ = read(folder).settings
    tail, usual = (one.figures["first_audio_p90"] for one in (other, baseline))
    with Store(folder, read_only=True) as store:
        limits = Constraint("first_audio_p90", 2.0, True, False), Constraint("first_audio_p90", 0.0, True, True)
        alone, against = margins_of(store, other.key, limits)
    assert (alone.value, alone.low, alone.high) == pytest.approx((2 - tail.value, 2 - tail.high, 2 - tail.low))
    assert against.value == pytest.approx(usual.value - tail.value) and against.low <= against.value <= against.high
    assert alone.sentences == against.sentences == 3


def test_figures_are_what_their_definitions_say(folder: Path) -> None:
    found = read(folder)
    assert [one.finished for one in found.settings] == [18] * 4
    for place, one in enumerate(found.settings):
        rtf = one.figures["real_time_factor"]
        # The third round took twice as long; a median does not mind.
        assert rtf.value == pytest.approx(2.0 / (place + 1) * 1.1) and (rtf.n, rtf.clusters) == (18, 3)
        assert one.figures["backbone_time_factor"].value == pytest.approx(rtf.value / 2)
        base = 1.0 / (place + 1)
        runs = [base * (1 + 0.1 * sentence) * (1 + (turn == 2)) for sentence in range(3) for turn in range(3)] * 2
        tail = one.figures["first_audio_p90"]
        assert (tail.n, tail.clusters) == (18, 3) and tail.low <= tail.value <= tail.high
        assert tail.value == pytest.approx(np.percentile(runs, 90)), "of all runs, slow rounds included"
        assert rtf.low == pytest.approx(2.0 / (place + 1))
        assert rtf.high == pytest.approx(2.0 / (place + 1) * 1.2)
        assert one.figures["speed_up"].value == pytest.approx(place + 1)
        words = one.figures["word_error_rate"]
        assert words.value == pytest.approx(place / 15) and (words.n, words.clusters) == (6, 3)
        assert words.low == 0.0
        assert words.high == pytest.approx(place / 5, abs=place / 15 + 1e-9)
    distances = [one.figures["log_mel_distance"].value for one in found.settings]
    assert distances[0] == 0.0
    with Store(folder, read_only=True) as store:
        takes = [one for one in store.takes() if one.cell.setting == found.settings[1].key and one.cell.round == 0]
    assert distances[1] == pytest.approx(np.mean([one.log_mel_distance for one in takes]))
    assert len(found.settings[1].takes) == len(takes) == 6
    assert "clipping" in {one.name for one in found.metrics}


def test_other_machines_are_not_compared_with(folder: Path) -> None:
    sql(folder, f"UPDATE takes SET machine = 'another' WHERE {OF_THE_SECOND}")
    found = read(folder)
    assert "speed_up" not in found.settings[1].figures and "real_time_factor" in found.settings[1].figures
    assert len(found.machines) == 2


def test_takes_of_a_busy_machine_are_counted_and_said(folder: Path) -> None:
    sql(folder, "UPDATE takes SET measurements = json_set(measurements, '$.cores', 2, '$.other_seconds', 0.0)")
    all_of_it = "json_set(measurements, '$.other_seconds', json_extract(measurements, '$.seconds'))"
    sql(folder, f"UPDATE takes SET measurements = {all_of_it} WHERE round = 2 AND {OF_THE_SECOND}")
    found = read(folder)
    assert [one.busy for one in found.settings] == [0, 6, 0, 0]
    assert (found.settings[1].figures["other_share"].value, found.settings[1].figures["other_share"].n) == (0.0, 18)
    (line,) = doubt_lines(found)
    said = "The machine was busy during 6 of 72 takes: other processes took more than 10 % of the cores. RTF"
    assert line.startswith(said)
    page = to_html(found)
    assert line in html.unescape(page) and "<td>18 (6 busy)</td>" in page
    assert [row["busy_takes"] for row in csv.DictReader(io.StringIO(to_csv(found)))] == ["0", "6", "0", "0"]
    assert sum(row["busy"] for row in rows_of_takes(found)) == 6
    assert [one["busy_takes"] for one in to_json(found)["settings"]] == [0, 6, 0, 0]


def test_settings_whose_technique_skipped_nothing_are_said(folder: Path) -> None:
    note = f"{NOTHING_SKIPPED}: A cache: no step changed little; raise the threshold."
    sql(folder, f"UPDATE takes SET notes = ? WHERE {OF_THE_SECOND}", json.dumps(["Read by the test.", note]))
    found = read(folder)
    assert [one.idle for one in found.settings[:2]] == [(), (note,)]
    assert to_json(found)["settings"][1]["nothing_skipped"] == [note]
    assert doubt_lines(found) == [f"Quick: {note}"]
    assert f"Quick: {note}" in html.unescape(to_html(found))


def test_the_front_and_who_is_heard(folder: Path) -> None:
    found = read(folder)
    assert found.front(("speed_up", "word_error_rate")) == {one.key for one in found.settings}
    assert found.front(("speed_up",)) == {found.settings[3].key}
    heard = found.heard[found.settings[0].key]
    assert len(heard) == 6
    assert all(one.path.is_file() and one.understood == "heard" for one in heard)
    assert [setting_title(one) for one in found.settings][1:] == [
        "Quick",
        "Step pruning 2, cross-fade 0",
        "Step pruning 3, cross-fade 0",
    ]


def test_a_single_sentence_is_resampled_over_its_seeds(tmp_path: Path) -> None:
    finished(tmp_path, study(sentences=["One sentence."], seeds=[0, 1, 2]))
    figure = read(tmp_path).settings[1].figures["log_mel_distance"]
    assert (figure.n, figure.clusters) == (3, 3) and figure.low < figure.value < figure.high
    assert re.fullmatch(r"[\d.]+ \([\d.]+–[\d.]+\)", figure_text(metric("log_mel_distance"), figure))


def test_a_single_take_has_no_interval(tmp_path: Path) -> None:
    finished(tmp_path, study(sentences=["One sentence."]))
    found = read(tmp_path)
    for one in found.settings:
        assert one.figures and not any(figure.spreads for figure in one.figures.values())
        assert not any("(" in figure_text(metric(name), figure) for name, figure in one.figures.items())
    assert "scriptsize" not in to_latex(found)
    assert figure_text(metric("speed_up"), None) == "–"


def test_some_settings_only(folder: Path) -> None:
    found = read(folder)
    with Store(folder, read_only=True) as store:
        some = figures_of(store, [found.settings[2].key])
    assert set(some) == {found.settings[0].key, found.settings[2].key}
    assert some[found.settings[2].key] == found.settings[2].figures


def test_reference_speech_is_shown_with_the_settings(folder: Path) -> None:
    assert not read(folder).references
    spoken = study().utterances
    with Store(folder) as store:
        for place, one in enumerate(spoken):
            verdict = Verdict("words", {"edits": float(place == 0), "words": 5.0}, "heard")
            store.add_reference(ReferenceMeasured(MeasureReference(one), (verdict,), 0.0))
    found = read(folder)
    floor = found.references["word_error_rate"]
    assert (floor.value, floor.n, floor.clusters) == (pytest.approx(1 / 15), 3, 3)
    *settings, last = csv.DictReader(io.StringIO(to_csv(found)))
    assert (last["setting"], last["origin"], last["real_time_factor"]) == (REFERENCE, "reference", "")
    written = [float(last[f"word_error_rate{end}"]) for end in ("", "_low", "_high")]
    assert written == [floor.value, floor.low, floor.high]
    assert len(settings) == 4
    line = next(one for one in to_latex(found).splitlines() if one.startswith(REFERENCE))
    assert "6.67 {\\scriptsize [0, 20.0]}" in line
    alike = replace(found, settings=found.settings[:1])
    assert "Word error rate" in to_latex(alike) and "Ops ratio" not in to_latex(alike), "nothing wrong is a finding"
    page = to_html(found)
    assert f"<td>{REFERENCE}</td>" in page
    words, _tail = reference_lines(found)
    assert words.startswith("Word error rate of the same judge on the reference speech: 6.67 % (0 %–20.0 %, 3 rec")
    none = replace(found, references={"word_error_rate": Estimate(0.0, 0.0, 0.0, 3, 3, 15)})
    assert "speech: 0 % (3 recordings, 15 words);" in reference_lines(none)[0], "no interval, but so many words"
    assert "0 <small>(15 words)</small>" in to_html(none)
    inside = re.findall(r'download="results\.(?:csv|tex)" href="data:[^;]+;base64,([^"]+)"', page)
    assert [base64.b64decode(one).decode() for one in inside] == [to_csv(found), to_latex(found)]


def test_diversity_is_over_the_seeds_of_each_utterance(folder: Path) -> None:
    """Curves a known way apart, in one setting wider than in the others; later rounds have none."""
    with closing(sqlite3.connect(folder / DATABASE)) as direct, direct:
        rows = direct.execute("SELECT setting, utterance, seed, round FROM takes").fetchall()
        keys = [key for (key,) in direct.execute("SELECT key FROM settings ORDER BY place")]
        for key, utterance, seed, turn in rows:
            curve = tuple([5.0 + seed * 0.1 * (keys.index(key) + 1)] * 30)
            said = [Verdict("melody", {"pitch_range": 0.2}, curve=curve).to_json()] if turn == 0 else []
            direct.execute(JUDGED, (json.dumps(said), key, utterance, seed, turn))
    found = read(folder)
    for place, one in enumerate(found.settings, start=1):
        diversity = one.figures["diversity"]
        assert diversity.value == pytest.approx(0.1 * place / np.sqrt(2))
        assert (diversity.n, diversity.clusters) == (6, 3)
        assert one.figures["pitch_range"].value == pytest.approx(0.2)
    assert {"pitch_range", "diversity"} <= {one.name for one in found.metrics}
    assert "Diversity" in to_latex(found) and "Diversity against Speed-up" in to_html(found)
    alone = to_html(replace(found, settings=tuple(replace(one, origin=BASELINE) for one in found.settings)))
    assert "Diversity against RTF" in alone and "against Speed-up" not in alone
    assert found.front(("speed_up", "diversity")) == {found.settings[-1].key}


@pytest.mark.parametrize("objectives", [2, 3])
def test_against_the_definition(objectives: int) -> None:
    # Of few values, so that many points are equal in something.
    costs = np.random.default_rng(objectives).integers(0, 9, (200, objectives)).astype(float)
    expected = [not any((other <= one).all() and (other < one).any() for other in costs) for one in costs]
    assert front(costs).tolist() == expected


def test_what_is_not_a_number_is_on_no_front() -> None:
    assert front(np.array([[np.nan, 0.0], [1.0, 1.0], [np.inf, -1.0]])).tolist() == [False, True, False]
    assert front(np.zeros((0, 2))).tolist() == []
    with pytest.raises(ValueError, match="objectives"):
        front(np.zeros(3))


# --- Paired tests -----------------------------------------------------------------------------------------------------
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
    assert found.words.startswith("Word error rate +15.6 % (")
    assert "5 of 8 sentences worse, 1 better, p = 0.219" in found.words
    swapped = paired("word_error_rate", counted(other), counted(one))
    assert swapped is not None and swapped.difference == -found.difference and swapped.p == found.p


def test_pairing_sees_what_two_intervals_do_not() -> None:
    scores = {str(number): value for number, value in enumerate(np.linspace(1, 4.5, 30))}
    found = paired("naturalness", {name: value - 0.05 for name, value in scores.items()}, scores)
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
            direct.execute(JUDGED, (json.dumps(verdict), key, utterance, seed, 0))
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
    said = "\n".join([*wording.paired_lines(results), *wording.worst_lines(results)])
    assert "against its baseline: Word error rate +50.0 %" in said and "not corrected for their number" in said
    assert "100 %: “Another one.” (" in said and "heard as “murmur”, audio/" in said
    page = to_html(results)
    assert "<h2>Against the baseline</h2>" in page and "<h2>Most errors</h2>" in page
    assert page.split("<h2>Most errors</h2>")[1].count("<audio") == 4
    listed = to_json(results)["settings"][2]
    assert Path(listed["worst"][0]["audio"]).is_file() and listed["paired"][0]["p"] == 0.5
    out = console.out("study", "status", str(judged))
    assert "2 of 3 sentences worse, 0 better, p = 0.5" in out and "Most errors of " in out
