"""The model behind the trade-off view: points, axes, filter, front, and why something is not shown."""

import csv
import io
import operator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paretone.figures.scatter import Scale, tick_text, tick_texts
from paretone.listening.results import ListeningScore
from paretone.measure.estimates import Estimate
from paretone.measure.evaluation.judges import Verdict
from paretone.setting.knobs import Values
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements, Metrics, repeated
from paretone.studies.results import read
from paretone.studies.store import Store
from paretone.studies.study import MeasureReference, ReferenceMeasured
from paretone_app.features.tradeoff import words
from paretone_app.features.tradeoff.axes import axis, figure_text
from paretone_app.features.tradeoff.saved import recalled, remembered
from paretone_app.features.tradeoff.scene import BASELINE, Filter, PlotOptions, Pool, Range, scene
from paretone_app.features.tradeoff.styles import PointStyles, described
from paretone_app.listening.stimuli import setting_key
from paretone_app.results.points import (
    LISTENING,
    STUDY,
    TAKES,
    Point,
    Scores,
    Sound,
    brief,
    published_points,
    study_points,
    take_points,
)
from paretone_app.shell.colours import LIGHT
from tests.app.without_qt import import_without_qt
from tests.engine.studies.small import finished, study

PLAIN = Setting("f5-mini", Values({"steps": 16}), seed=3)
FAST = PLAIN.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.1}), "a" * 16))


def summary(name: str, setting: Setting, seconds: float, distance: float | None = None, **more: object) -> TakeSummary:
    measured = Measurements(seconds, 2.0, seconds / 2, ops_ratio=0.5, peak_memory_bytes=2**20)
    fields = {"machine": "one", "log_mel_distance": distance, "metrics": Metrics(loudness=-23.0), **more}
    return TakeSummary(name, "2026-11-21", "A text.", "anna", setting, 24000, 48000, measurements=measured, **fields)


def point(key: str, x: float, y: float, **more: object) -> Point:
    figures = {"real_time_factor": Estimate(x, x - 0.1, x + 0.1, 4, 2), "log_mel_distance": Estimate(y, y, y, 4, 2)}
    fields = {"kind": STUDY, "title": key, "source": "S", "model": "F5 mini", "techniques": (), "figures": figures}
    return Point(key, **{**fields, "setting": PLAIN.bare, "finished": 4, **more})


def shown(points: list[Point] | tuple[Point, ...], chosen: Filter = Filter(), **look: object):
    return scene(Pool(points, published_points()), chosen, PlotOptions(**look))


# --- Points -----------------------------------------------------------------------------------------------------------
def test_takes_have_their_figures_with_intervals_if_timed_again_and_those_of_their_baselines() -> None:
    takes = [summary("fast", FAST, 1.0, 0.2, label="Mine"), summary("plain", PLAIN, 4.0), summary("new", PLAIN, 8.0)]
    fast, plain_one, _ = take_points(takes, Scores())
    assert fast.figures["real_time_factor"].value == 0.5
    assert fast.figures["log_mel_distance"] == Estimate(0.2, 0.2, 0.2, 1, 1)
    assert fast.figures["peak_memory"].value == 1.0
    assert "speed_up" not in fast.figures, "only studies measure it"
    assert plain_one.figures["log_mel_distance"].value == 0.0, "a baseline is no distance from itself"
    assert fast.baseline == plain_one.figures, "the newest baseline, which comes first"
    assert (fast.source, fast.model, fast.techniques) == (TAKES, "F5 mini", ("ditreducio",))
    assert "mine" in fast.haystack and "a text." in fast.haystack
    (named, *_) = take_points([summary("fast", FAST, 1.0, 0.2, fidelity_to="new"), *takes[1:]], Scores())
    assert named.baseline["real_time_factor"].value == 4.0, "that which its fidelity was measured to"
    (elsewhere, *_) = take_points([summary("fast", FAST, 1.0, machine="two"), *takes[1:]], Scores())
    assert not elsewhere.baseline, "times of two machines cannot be compared"
    again = [Measurements(seconds, 2.0) for seconds in (2.0, 2.2, 2.1, 8.0, 2.4)]
    (made,) = take_points([repeated(summary("fast", FAST, 9.0, 0.2), again)], Scores())
    figure = made.figures["real_time_factor"]
    assert (figure.value, figure.n, figure.spreads) == (1.1, 5, True)
    assert 1.0 <= figure.low < 1.1 < figure.high <= 4.0 and not made.figures["ops_ratio"].spreads


def test_a_change_of_takes_makes_only_the_points_that_it_concerns() -> None:
    scores, made = Scores(), {}
    takes = [summary("fast", FAST, 1.0, 0.2), summary("plain", PLAIN, 4.0), summary("odd", replace(PLAIN, seed=4), 8.0)]
    before = take_points(takes, scores, made)
    pool = Pool(before)
    pool.values(axis("real_time_factor"))
    longer = take_points([summary("new", FAST, 2.0, 0.1), *takes], scores, made)
    assert longer[1:] == before and all(map(operator.is_, longer[1:], before))
    assert np.array_equal(
        Pool(longer, before=pool).values(axis("real_time_factor")), Pool(longer).values(axis("real_time_factor"))
    )
    other = take_points([summary("newer", PLAIN, 5.0), *takes], scores, made)
    assert other[1].baseline is other[0].figures and other[1] is not before[0], "another baseline"
    assert other[2] is before[1] and other[3] is before[2] and set(made) == {"newer", "fast", "plain", "odd"}
    assert take_points(takes, Scores(), made)[0] is not before[0], "other scores"


def test_settings_of_a_study_have_intervals_and_takes(tmp_path: Path) -> None:
    finished(tmp_path, study())
    with Store(tmp_path) as store:
        verdict = Verdict("words", {"edits": 1.0, "words": 20.0})
        store.add_reference(ReferenceMeasured(MeasureReference(study().utterances[0]), (verdict,), 0.0))
    found = read(tmp_path)
    baseline, two, three = study_points(found, Scores(), {found.settings[0].key: ("a machine",)})
    assert two.floors["word_error_rate"].value == 0.05
    assert (baseline.techniques, two.techniques) == ((), ("steps",))
    assert two.figures["ops_ratio"] == found.settings[1].figures["ops_ratio"]
    assert two.baseline["ops_ratio"].value == 1.0 and two.candidate == found.settings[1].key
    assert {one.text for one in two.sounds} == {"One sentence.", "Another one.", "And a third."}
    assert (baseline.machines, two.machines) == (("a machine",), ())
    assert three.folder == tmp_path and "3" in three.title


def test_listening_scores_find_their_settings() -> None:
    score = ListeningScore(setting_key(FAST), "mushra", 80.0, 70.0, 90.0, 12, FAST.bare.fingerprint)
    scores = Scores([score, replace(score, mean=10.0, n=3)])
    (take,) = take_points([summary("fast", FAST, 1.0)], scores)
    assert take.figures[LISTENING + "mushra"] == Estimate(80.0, 70.0, 90.0, 12, 12), "that of the most answers"
    assert scores.of_candidate(FAST.bare.fingerprint)[LISTENING + "mushra"].value == 80.0
    other = replace(FAST, techniques=(replace(FAST.techniques[0], artefact="b" * 16),))
    assert not scores.of_take(other), "another strategy table is another condition"
    assert not scores.of_candidate("unknown")


def test_published_results_have_source_and_hardware_and_unknown_techniques_do_no_harm() -> None:
    found = published_points()
    assert len({one.source for one in found}) == 5
    for one in found:
        assert any(line.startswith("Source: ") for line in one.remarks)
        assert any(line.startswith("Hardware: ") and len(line) > 12 for line in one.remarks)
        assert not one.sounds and one.setting is None
    assert any(one.figures["speed_up"].value == pytest.approx(0.178 / 0.129) for one in found)
    assert brief("First-block cache (TeaCache/FBCache-like) τ = 0.2") == "First-block cache τ = 0.2"
    strange = Setting("gone", techniques=(UsedTechnique("strange"),))
    (take,) = take_points([summary("one", strange, 1.0)], Scores())
    assert (take.model, take.title) == ("gone", "strange")


# --- Axes -------------------------------------------------------------------------------------------------------------
def test_ratios_divide_by_the_baseline_and_say_why_they_cannot() -> None:
    base = {"real_time_factor": Estimate(2.0, 1.0, 3.0, 4, 2), "word_error_rate": Estimate(0.0, 0.0, 0.0, 4, 2)}
    one = point("a", 1.0, 0.2, baseline=base)
    rtf, distance, errors = axis("real_time_factor"), axis("log_mel_distance"), axis("word_error_rate")
    assert rtf.as_ratio.figure(one) == Estimate(0.5, 0.45, 0.55, 4, 2) and rtf.figure(one).value == 1.0
    assert distance.as_ratio is distance, "a distance to the baseline is no ratio to it"
    assert rtf.as_ratio.label == "RTF ÷ baseline’s" and distance.label == "Log-mel distance (nat. log)"
    wrong = replace(one, figures={**one.figures, "word_error_rate": Estimate(0.1, 0.0, 0.2, 4, 2)})
    assert errors.as_ratio.figure(wrong) is None and "of the baseline is 0" in errors.as_ratio.why_not(wrong)
    assert "no baseline with RTF" in rtf.as_ratio.why_not(replace(wrong, baseline={}))


def test_every_axis_says_why_a_point_has_no_place_on_it() -> None:
    (take,) = take_points([summary("one", FAST, 1.0)], Scores())
    empty = point("a", 1.0, 1.0, figures={})
    for name, one, says in (
        ("speed_up", take, "only studies measure Speed-up"),
        ("log_mel_distance", take, "no baseline take from the same noise"),
        (LISTENING + "mushra", take, "no listening test"),
        ("word_error_rate", empty, "put its judge"),
        ("pitch_error", empty, "could not be measured"),
        ("ops_ratio", replace(empty, finished=0), "no take is finished yet"),
    ):
        assert says in axis(name).why_not(one)
    broken = replace(empty, figures={"ops_ratio": Estimate(float("nan"), 0.0, 0.0, 1, 1)})
    assert shown([broken], x="ops_ratio").missing == (("Ops ratio is not a number", 1),)


def test_figures_in_words() -> None:
    speed = axis("speed_up")
    assert figure_text(speed, Estimate(2.05, 1.98, 2.12, 4, 2)) == "2.05 times (95 %: 1.98 to 2.12; n = 4)"
    assert figure_text(speed, Estimate(2.0, 2.0, 2.0, 1, 1)) == "2.00 times (one take)"
    assert figure_text(speed, Estimate(2.0, 2.0, 2.0, 0, 0)) == "2 times (published, no interval)"
    assert figure_text(axis("word_error_rate"), Estimate(0.0, 0.0, 0.0, 4, 2, 18)) == "0 % (n = 4, 18 words)"
    worse = Estimate(-0.5, -1.0, 0.25, 4, 2)
    assert figure_text(axis("listening:ccr"), worse) == "−0.500 (95 %: −1.00 to 0.250; n = 4)"
    assert tick_text(-0.25) == "−0.25"
    assert tick_texts([-0.5, 0.0, 0.5, 1.0]) == ["−0.5", "0.0", "0.5", "1.0"], "as many decimals"
    assert tick_texts([0.005, 0.01], "%") == ["0.5", "1.0"], "shares"
    assert tick_texts([0.1, 1.0, 10.0]) == ["0.1", "1", "10"], "not on a logarithmic axis"
    assert figure_text(axis("peak_memory").as_ratio, Estimate(2.0, 1.0, 3.0, 3, 1)) == "2.00 (n = 3)"


def test_logarithmic_scales_are_even_in_decades() -> None:
    scale = Scale.of(np.array([0.01, 10.0, 0.0, -1.0, np.nan]), logarithmic=True)
    assert scale.low < 0.01 and scale.high > 10.0, "what has no logarithm does not count"
    assert np.ptp(np.diff(scale.share(np.array([0.01, 0.1, 1.0, 10.0])))) == pytest.approx(0.0, abs=1e-9)
    assert scale.ticks(4) == pytest.approx((0.01, 0.1, 1.0, 10.0))
    assert scale.ticks(12) == pytest.approx((0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0))
    for low, high in ((0.15, 0.85), (0.9, 1.1), (1e-9, 1e9), (3.0, 3.0)):
        for most in (3, 8):
            ticks = Scale.of(np.array([low, high]), True).ticks(most)
            assert 2 <= len(ticks) <= 2 * most and list(ticks) == sorted(ticks)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_sections_of_a_scale_stay_within_it(logarithmic: bool) -> None:
    whole = Scale.of(np.array([1.0, 16.0]), logarithmic)
    point = np.array([4.0])
    around = float(whole.share(point)[0])
    nearer = whole.zoomed(0.5, around, whole)
    assert float(nearer.share(point)[0]) == pytest.approx(around) and nearer.logarithmic == logarithmic
    assert float(np.diff(whole.share(np.array([nearer.low, nearer.high])))[0]) == pytest.approx(0.5)
    assert nearer.zoomed(3.0, 0.1, whole) == whole
    for by, end in ((-9.0, "low"), (9.0, "high")):
        moved = nearer.moved(by, whole)
        assert getattr(moved, end) == pytest.approx(getattr(whole, end))
        assert float(np.diff(whole.share(np.array([moved.low, moved.high])))[0]) == pytest.approx(0.5)
    nearest = whole
    for _ in range(100):
        nearest = nearest.zoomed(0.5, 0.5, whole)
    assert nearest.low < nearest.high and len(nearest.ticks(5)) >= 2


def test_times_of_a_busy_machine_have_a_ring_and_those_of_two_machines_a_note() -> None:
    measured = Measurements(2.0, 2.0, 1.0, cpu_seconds=1.0, other_seconds=1.0, cores=2)
    takes = [summary("plain", PLAIN, 4.0), replace(summary("busy", FAST, 1.0, 0.2), measurements=measured)]
    points = [*take_points(takes, Scores()), point("study", 2.0, 0.1, busy=3)]
    found = shown(points)
    ringed = [found.points[place].key for place in described(found, PointStyles(LIGHT)).doubtful]
    assert sorted(ringed) == ["busy", "study"]
    said = words.tip(found.points[found.index["study"]], found)
    assert "The machine was busy during 3 of 4 takes: other processes took more than 10 %" in said
    rows = list(csv.DictReader(io.StringIO(words.table(found))))
    assert {one["title"]: one["busy_takes"] for one in rows}["study"] == "3"
    assert described(shown(points, x="cpu_time_factor"), PointStyles(LIGHT)).doubtful == ()
    points = [point("a", 1.0, 1.0, machines=("one",)), point("b", 2.0, 1.0, machines=("two",))]
    assert shown(points).notes == ("The points are from 2 machines; RTF can be compared on one machine only.",)
    assert not shown(points[:1]).notes and not shown(points, x="log_mel_distance").notes


# --- What is shown ----------------------------------------------------------------------------------------------------
def test_the_front_follows_the_directions_of_its_axes() -> None:
    points = [point("a", 1.0, 3.0), point("b", 2.0, 1.0), point("c", 3.0, 2.0), point("d", 1.0, 4.0)]
    found = shown(points)
    assert [found.points[place].key for place in found.walk] == ["a", "b"]
    assert found.own == 4 and found.dominated == 0
    best = shown(points, dominated=False)
    assert {one.key for one in best.points} == {"a", "b"} and best.dominated == 2
    quick = [replace(one, figures={**one.figures, "speed_up": one.figures["real_time_factor"]}) for one in points]
    turned = shown(quick, x="speed_up")
    assert [turned.points[place].key for place in turned.walk] == ["b", "c"]
    assert len(shown([*points, point("e", 2.0, 1.0)]).walk) == 3, "equal points do not beat each other"
    loudness = shown(take_points([summary("one", FAST, 1.0, 0.1)], Scores()), y="loudness")
    assert loudness.own == 1 and not loudness.walk
    assert loudness.notes == ("There is no front: neither end of Loudness is better.",)


def test_knobs_with_several_values_are_axes_and_settings_that_differ_in_one_are_joined() -> None:
    used = (UsedTechnique("ditreducio", Values({"threshold": one})) for one in (0.3, 0.1, 0.2))
    settings = [PLAIN.bare.with_technique(one) for one in used]
    other = replace(settings[0], options=Values({"steps": 8}))
    points = [point(str(place), 2.0, 1.0 + place, setting=one) for place, one in enumerate(settings)]
    points += [point("other", 2.0, 5.0, setting=other), point("plain", 2.0, 6.0)]
    assert [one.title for one in Pool(points).axes if one.knob] == ["DiTReducio: threshold δ", "Steps"]
    assert not [one for one in Pool(points[:1]).axes if one.knob], "one value is no axis"
    found = shown(points, x="knob:ditreducio.threshold")
    assert found.x[:, 0].tolist() == [0.3, 0.1, 0.2, 0.3] and not found.walk
    assert found.missing == (("the setting has no DiTReducio: threshold δ", 1),)
    drawn = described(found, PointStyles(LIGHT))
    assert drawn.strands == ((1, 2, 0),), "in the order of the values; not with those of other steps"
    assert "DiTReducio: threshold δ: 0.3" in words.tip(found.points[0], found).replace("<br>", "\n")
    assert "threshold" not in words.figures_html(found.points[0], found.options, LIGHT).casefold()
    kept = PlotOptions("knob:.steps", "naturalness")
    assert recalled(remembered(kept, True, Filter()))[0] == kept


def test_what_has_no_place_is_counted_with_its_reason() -> None:
    takes = take_points([summary("one", FAST, 1.0), summary("two", FAST, 2.0), summary("plain", PLAIN, 4.0)], Scores())
    found = shown([*takes, point("a", 1.0, 2.0)])
    assert found.own == 2
    ((reason, count),) = found.missing
    assert count == 2 and reason.startswith("Log-mel distance was not measured")
    assert words.remarks(found)[-1].startswith("2 points not shown: Log-mel distance")


def test_filters() -> None:
    points = [
        point("a", 1.0, 1.0, source="One", title="Quick fox"),
        point("b", 1.0, 1.0, source="Two", techniques=("ditreducio", "steps"), model="Other"),
        point("c", 1.0, 1.0, source="Two", techniques=("steps",), sounds=(Sound("x", "The lazy dog.", "bella", 0),)),
    ]

    def keys(**chosen: object) -> str:
        return "".join(sorted(one.key for one in shown(points, Filter(**chosen)).points))

    assert keys() == "abc" and keys(source="Two") == "bc"
    assert keys(model="Other") == "b" and keys(voice="bella") == "c"
    assert keys(words="LAZY the") == "c" and keys(words="lazy fox") == "" and keys(words="fox") == "a"
    assert keys(hidden=frozenset({"ditreducio"})) == "ac" and keys(hidden=frozenset({"steps"})) == "a"
    assert keys(hidden=frozenset({BASELINE})) == "bc" and keys(only=frozenset({"a", "c"})) == "ac"
    filtered = shown(points, Filter(source="Two"))
    assert filtered.filtered == 1 and "1 filtered out" in words.counts(filtered)
    pool = Pool(points, published_points())
    assert pool.counts == {"": 1, "ditreducio": 1, "steps": 2}
    assert {"ditreducio", "steps"} < set(pool.techniques), "those of papers alone, too"
    assert (pool.origins["source"], pool.origins["voice"]) == (("One", "Two"), ("bella",))


def test_published_results_have_a_place_on_ratios_only_and_are_on_no_front() -> None:
    names = ("speed_up", "ops_ratio", "real_time_factor", "backbone_time_factor", "speaker_similarity")
    names += "whisper_word_error_rate", "log_mel_distance"
    figures = {name: Estimate(0.5, 0.5, 0.5, 4, 2) for name in names}
    own = point("a", 1.0, 1.0, figures=figures, baseline=figures)

    def ghosts(x: str, y: str, **more: bool) -> list[Point]:
        return [one for one in shown([own], x=x, y=y, published=True, **more).points if one.published]

    found = shown([own], x="speed_up", y="ops_ratio", published=True)
    assert {one.source for one in found.points if one.published} == {"DiTReducio"}, "nobody else gives operations"
    assert [found.points[place].key for place in found.walk] == ["a"], "though papers have faster ones"
    assert f"{len(found.points) - 1} published" in words.counts(found)
    similar = shown([own], x="real_time_factor", y="speaker_similarity", published=True)
    assert similar.notes == ("Published results are ratios to their own baselines: choose Ratios to see them.",)
    divided = ghosts("real_time_factor", "speaker_similarity", ratios=True)
    assert {one.source for one in divided} == {"DiTReducio", "CFG-free"}
    models = {one.model for one in ghosts("backbone_time_factor", "whisper_word_error_rate", ratios=True)}
    assert models == {"MegaTTS 3", "CosyVoice 2"}, "LM-RTF and DiT only"
    heard = ghosts("backbone_time_factor", "listening:naturalness_mos", ratios=True)
    assert "β = 0.4" in [one.title.split(", ")[1] for one in heard], "votes lie on votes"
    assert not ghosts("backbone_time_factor", "word_error_rate", ratios=True), "no paper's recogniser is so narrow"
    never = shown([own], y="log_mel_distance", published=True, ratios=True)
    assert never.notes == ("No published results here: no paper reports Log-mel distance.",)
    hiding = Filter(hidden=frozenset({"ditreducio"}))
    assert not any(one.techniques for one in shown([own], hiding, x="speed_up", y="ops_ratio", published=True).points)
    assert not any(one.published for one in shown([own], x="speed_up", y="ops_ratio").points)


def test_a_logarithmic_axis_leaves_out_what_has_no_logarithm_and_says_so() -> None:
    points = [point("a", 1.0, 2.0), point("b", 2.0, 0.0), point("c", 3.0, 0.0), point("d", 4.0, 1.0)]
    found = shown(points, log_y=True)
    assert found.logarithmic == (False, True)
    assert [one.key for one in found.points] == ["a", "d"] == [found.points[one].key for one in found.walk]
    reason = "Log-mel distance is 0, outside a logarithmic axis"
    assert found.missing == ((reason, 2),) and words.remarks(found) == (f"2 points not shown: {reason}.",)
    both = shown([*points, point("e", -1.0, 1.0)], log_x=True, log_y=True)
    assert [one.key for one in both.points] == ["a", "d"]
    assert "RTF is below 0, outside a logarithmic axis" in dict(both.missing)
    # One that could show nothing stays linear.
    found = shown([point("a", 1.0, 0.0), point("b", 2.0, -1.0)], log_x=True, log_y=True)
    assert found.logarithmic == (True, False) and found.own == 2 and not found.missing
    assert "Log-mel distance stays linear: none of the 2 points is above 0" in found.notes[0]
    assert shown([], log_x=True).logarithmic == (True, False), "nothing to refuse"


def test_what_is_shown_is_kept_in_words() -> None:
    look = PlotOptions("speed_up", "word_error_rate", True, False, True, False, True, False)
    hidden, ranges = frozenset({"steps", BASELINE}), (Range("speed_up", 2.0, 4.0),)
    chosen = Filter("A study", "F5 mini", "bella", "two words", hidden, frozenset({"a"}), ranges, "B")
    assert recalled(remembered(look, True, chosen)) == (look, True, replace(chosen, only=None))
    usual = replace(look, x=PlotOptions().x, y=PlotOptions().y)
    found = recalled(remembered(look, False, Filter()))
    assert found == (usual, False, Filter()), "axes that nobody chose follow what there is"


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]"),
        '{"look": {"x": "no such figure", "y": "real_time_factor", "ratios": 1}}',
        '{"filter": {"words": 4, "hidden": "steps", "source": null}}',
        '{"filter": {"ranges": [["nothing", 1, 2], ["speed_up", 4, 2], 3]}}',
    ],
)
def test_what_was_kept_and_cannot_be_read_was_never_chosen(text: str) -> None:
    assert recalled(text) == (PlotOptions(), False, Filter())


def test_a_second_study_is_drawn_as_ghosts_beneath_the_first() -> None:
    before = [point("old plain", 2.0, 0.0, source="Old"), point("old fast", 1.2, 0.4, source="Old", setting=FAST.bare)]
    now = [point("plain", 2.0, 0.0), point("fast", 1.0, 0.3, setting=FAST.bare), point("worse", 1.5, 0.5, setting=None)]
    found = shown([*before, *now], Filter(source="S", ghosts="Old"))
    titles = [one.title for one in found.points]
    assert titles[:2] == ["old plain", "old fast"], "beneath the others"
    assert found.ghosts == {0, 1} and found.own == 3 and found.filtered == 0
    assert [titles[place] for place in found.walk] == ["fast", "plain"], "ghosts beat nobody"
    assert [titles[place] for place in found.ghost_front] == ["old fast", "old plain"]
    assert {titles[one]: titles[other] for one, other in found.shifts} == {"old plain": "plain", "old fast": "fast"}
    assert "2 ghosts" in words.counts(found) and "a ghost" in words.plain(found.points[0], found)
    drawn = described(found, PointStyles(LIGHT))
    assert drawn.glyphs[1].colours != drawn.glyphs[titles.index("fast")].colours
    assert found.ghost_front in drawn.strands and set(found.shifts) <= set(drawn.strands)
    assert shown([*before, *now], Filter(ghosts="Old")).ghosts == {0, 1}, "of all sources one is beneath"
    assert not shown([*before, *now], Filter(source="Old", ghosts="Old")).ghosts, "a study is no ghost of itself"
    assert "No point of Gone has a place here." in shown(now, Filter(ghosts="Gone")).notes
    hidden = shown([*before, *now], Filter(source="S", ghosts="Old", words="fast"))
    assert [hidden.points[place].title for place in hidden.ghosts] == ["old fast"], "the filter is theirs, too"


def test_scores_of_the_reference_speech_are_shown() -> None:
    def judged(key: str, rate: float, floor: float | None) -> Point:
        figures = {"real_time_factor": Estimate(rate, rate, rate, 4, 2), "word_error_rate": Estimate(rate, 0, 1, 4, 2)}
        floors = {} if floor is None else {"word_error_rate": Estimate(floor, floor, floor, 10, 10)}
        return point(key, 1.0, 1.0, figures=figures, baseline=figures, floors=floors)

    points = [judged("a", 0.1, 0.02), judged("b", 0.2, 0.02), judged("c", 0.3, 0.0), judged("d", 0.4, None)]
    assert shown(points, y="word_error_rate").floors == ((), (0.0, 0.02)), "each once"
    assert shown(points, x="word_error_rate", y="real_time_factor", log_x=True).floors == ((0.02,), ())
    assert shown(points, Filter(only=frozenset("d")), y="word_error_rate").floors == ((), ())
    assert shown(points, y="word_error_rate", ratios=True).floors == ((), ()), "a floor is no ratio"
    assert shown(points, y="real_time_factor").floors == ((), ())
    found = shown(points, y="word_error_rate")
    assert "of the reference speech 2.00 %" in words.tip(points[0], found)
    assert "reference speech" not in words.tip(points[3], found)
    text = words.figures_html(points[0], found.options, LIGHT)
    assert "of the reference speech</td><td style='color:" + LIGHT.muted + "'><b>2.00</b>" in text
    assert "<small>10</small>" in text, "from how many recordings"
    assert "reference speech" not in words.figures_html(points[0], PlotOptions(y="word_error_rate", ratios=True), LIGHT)


# --- Words ------------------------------------------------------------------------------------------------------------
def test_a_point_in_words() -> None:
    figures = {"speed_up": Estimate(2.0, 1.9, 2.1, 4, 2), "log_mel_distance": Estimate(0.1, 0.1, 0.2, 4, 2)}
    one = point("Fast", 1.0, 1.0, figures=figures, machines=("a machine",), techniques=("ditreducio",))
    found = shown([one], x="speed_up")
    text = words.tip(one, found)
    said = "2.00 times (95 %: 1.90 to 2.10; n = 4)", "0.100 nat. log"
    for part in ("<b>Fast</b>", *said, "On the front", "a machine"):
        assert part in text
    assert words.plain(one, found).startswith("Fast, on the front; Speed-up (times): 2.00 times")
    ghost = next(one for one in published_points() if "T4" in one.title)
    assert "NVIDIA RTX 3090" in words.tip(ghost, found) and "table 1" in words.tip(ghost, found)


def test_settings_are_told_apart_in_words() -> None:
    own = point("a", 1.0, 1.0, setting=FAST.bare, techniques=("ditreducio",))
    text = words.difference_html(own, words.reference_of(own), LIGHT)
    assert text.startswith("<b>Against its baseline:</b>") and "DiTReducio: off → δ = 0.1" in text
    assert words.reference_of(point("b", 1.0, 1.0)) is None, "a baseline has none"
    other = words.Reference("A", replace(FAST, seed=9, options=Values({"steps": 8})), "A text.", "bella")
    text = words.difference_html(own, other, LIGHT)
    assert "Steps: 8 → 16" in text and "Seed" not in text, "a study's setting is over all seeds"
    (take,) = take_points([summary("one", FAST, 1.0)], Scores())
    text = words.difference_html(take, other, LIGHT)
    assert "Seed: 9 → 3" in text and "Voice: bella → anna" in text and "Text" not in text
    assert "the same setting" in words.difference_html(take, words.Reference("A", FAST, "A text.", "anna"), LIGHT)
    assert words.comparable(take, words.Reference("A", FAST, take.sounds[0].text))
    assert not words.comparable(take, words.Reference("A", FAST, "Another text."))
    assert not words.comparable(take, words.Reference("A", replace(FAST, model="lm-mini"), take.sounds[0].text))


def test_the_front_has_as_many_points_as_are_said_and_seen() -> None:
    points = [point("a", 1.0, 0.3), point("same", 1.0, 0.3), point("b", 2.0, 0.2), point("worse", 2.5, 0.25)]
    found, counts = shown(points), words.counts(shown(points[1:]))
    assert len(found.walk) == 3 and found.places_on_front == 2
    assert "3 on the front at 2 places" in words.counts(found), "two are drawn over each other"
    assert counts.endswith("2 on the front") or "2 on the front ·" in counts
    assert "Playing the front: 6 settings" in words.playing_words(6, 6)
    assert "Playing 6 of the 7 points on the front, those of one study," in words.playing_words(6, 7)


def test_what_the_view_shows_is_worked_out_without_qt() -> None:
    names = ("take_grid.grid", *(f"tradeoff.{one}" for one in ("axes", "parallel", "saved", "scene", "words")))
    import_without_qt("paretone_app.results.points", *(f"paretone_app.features.{one}" for one in names))
