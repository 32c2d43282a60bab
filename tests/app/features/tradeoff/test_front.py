"""Along the front: why a point is where it is, and from where on a difference is heard; and selections as files:
written, read, found again in another person's studies, and refused in a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.errors import SettingError
from paretone.measure.estimates import Estimate
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone_app.features.tradeoff.saved import find, read, remembered, selection_of, write
from paretone_app.features.tradeoff.scene import Crossing, Filter, PlotOptions, Pool, Scene, in_words, limit, scene
from paretone_app.features.tradeoff.words import why, why_html
from paretone_app.results.points import STUDY, TAKE, Point
from paretone_app.shell.colours import LIGHT

PLAIN = Setting("f5-mini", Values({"steps": 16, "guidance": 0.7}))
PRUNED = PLAIN.with_technique(UsedTechnique("steps", Values({"steps": 7})))
BOTH = PRUNED.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.1})))
OPTIONS = PlotOptions(x="speed_up", y="log_mel_distance")


def exactly(value: float) -> Estimate:
    return Estimate(value, value, value, 3, 3)


def point(key: str, setting: Setting, speed: float, distance: float, kind: str = STUDY, folder: str = "one") -> Point:
    figures = {"speed_up": exactly(speed), "log_mel_distance": exactly(distance)}
    place = Path(folder) if kind == STUDY else None
    return Point(key, kind, f"setting {key}", "A study", "F5 mini", (), figures, {}, setting, folder=place)


def shown(*points: Point) -> tuple[Pool, Scene]:
    pool = Pool(points)
    return pool, scene(pool, Filter(), OPTIONS)


def test_every_change_is_told_with_what_it_does_alone() -> None:
    plain, both = point("a", PLAIN, 1, 0.0), point("b", BOTH, 3, 0.3)
    worse = point("c", PRUNED, 2, 0.4)
    pool, front = shown(plain, both, worse)
    found = why(both, front, pool.measured)
    assert found is not None and found.neighbour is plain, "what is dominated is no neighbour"
    threshold, steps = found.changes
    assert steps.alone is worse and threshold.alone is None
    text = why_html(found, OPTIONS, LIGHT)
    assert "From setting a" in text and "1.00 → 3.00" in text and "0 → 0.30" in text
    assert "alone Speed-up" in text and "1.00 → 2.00" in text and "not measured alone" in text


def test_a_single_change_is_all_of_it_and_options_count_too() -> None:
    first, second = point("a", PLAIN, 1, 0.0), point("b", PRUNED, 2, 0.1)
    other = point("c", Setting("f5-mini", PLAIN.options.replace(guidance=0.0)), 3, 0.2)
    pool, front = shown(first, second, other)
    found = why(second, front, pool.measured)
    assert found is not None and [one.alone for one in found.changes] == [second]
    assert "all of it" in why_html(found, OPTIONS, LIGHT)
    from_last = why(other, front, pool.measured)
    assert from_last is not None and from_last.neighbour is second and len(from_last.changes) == 2
    assert {one.alone for one in from_last.changes} == {first, None}, "without pruning it is the first"
    beginning = why(first, front, pool.measured)
    assert beginning is not None and beginning.neighbour is second, "the first has one to the right only"


def test_only_points_of_one_study_and_model_on_the_front_have_a_reason() -> None:
    first = point("a", PLAIN, 1, 0.0)
    elsewhere = point("b", PRUNED, 2, 0.1, folder="another")
    foreign = point("c", Setting("megatts3-mini"), 3, 0.2)
    take = point("d", BOTH, 4, 0.3, kind=TAKE)
    pool, front = shown(first, elsewhere, foreign, take, point("e", BOTH, 1.5, 0.25))
    for one in (*front.points, None):
        assert why(one, front, pool.measured) is None


def along(x: str, values: tuple[float, ...], **options: bool) -> Scene:
    figures = ({x: exactly(value), "log_mel_distance": exactly(0.1 * at)} for at, value in enumerate(values))
    points = [replace(point(str(at), PLAIN, 1, 0), figures=one) for at, one in enumerate(figures)]
    return scene(Pool(points), Filter(), PlotOptions(x=x, y="log_mel_distance", **options))


def test_a_difference_begins_halfway_between_the_shown_points_of_each_step() -> None:
    speed_ups = along("speed_up", (1.0, 2.0, 4.0, 8.0))
    found = limit([Crossing("1", "2", True), Crossing("2", "1", False), Crossing("2", "3", True)], speed_ups)
    assert found is not None and found.crossings == 3
    assert found.low == pytest.approx(8**0.5) and found.high == pytest.approx(32**0.5)
    assert found.value == pytest.approx((8 * 32**0.5) ** (1 / 3)), "speed-ups are ratios"
    words = in_words(found, speed_ups)
    assert words.startswith("Difference heard from 3.56×") and "3 marks, 2.83 to 5.66" in words
    assert "not blind" in words
    distances = along("log_mel_distance", (0.0, 0.1))
    found = limit([Crossing("0", "1", True)], distances)
    assert found is not None and found.value == pytest.approx(0.05), "not above 0: no ratios"
    assert "(1 mark)" in in_words(found, distances)
    here = along("speed_up", (1.0, 2.0))
    assert limit([], here) is None and limit([Crossing("1", "9", True)], here) is None
    assert limit([Crossing("1", "9", True), Crossing("0", "1", True)], here).crossings == 1


# --- Selections as files ----------------------------------------------------------------------------------------------
VIEW = remembered(PlotOptions(x="speed_up", log_x=True), True, Filter(words="steps"))
POINTS = point("a", PLAIN, 1, 0.0), point("b", PRUNED, 2, 0.1), point("c", BOTH, 3, 0.2)


def saved(folder: Path) -> Path:
    write(selection_of(VIEW, POINTS[:2], POINTS[1]), folder / "selection.json")
    return folder / "selection.json"


def test_what_was_selected_is_found_in_another_copy_of_the_study(tmp_path: Path) -> None:
    there = read(saved(tmp_path))
    assert json.loads(there.view) == json.loads(VIEW) and there.current == there.points[1]
    theirs = [replace(one, key=f"their {one.key}", folder=Path("elsewhere")) for one in POINTS]
    found = find(there, theirs)
    assert found == (("their a", "their b"), "their b", "")
    assert find(there, [replace(one, source="Under another title") for one in theirs]) == found
    other = replace(theirs[0], key="the same elsewhere", source="Another study")
    assert find(there, [*theirs, other]) == found, "the study of that title comes first"


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    there = read(saved(tmp_path))
    keys, current, remark = find(there, POINTS[:1])
    assert (keys, current) == (("a",), "")
    assert remark.startswith("1 selected setting is not here, such as “setting b”; open the study “A study”")
    with pytest.raises(SettingError, match="None of the selected settings is here; open the study “A study” first"):
        find(there, POINTS[2:])


def test_takes_are_nobody_elses() -> None:
    take = point("d", BOTH, 4, 0.3, kind=TAKE)
    with pytest.raises(SettingError, match="Select points of a study first"):
        selection_of(VIEW, [take], take)
    assert len(selection_of(VIEW, [take, POINTS[0]], take).points) == 1
    assert selection_of(VIEW, [take, POINTS[0]], take).current is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: "[]", "must be an object"),
        (lambda data: "[" * 100_000, "is not a selection"),
        (lambda data: json.dumps(data | {"paretone_selection": 2}), "another version"),
        (lambda data: json.dumps(data | {"points": [{"study": "A study"}]}), "points\\[0\\] lacks the field"),
        (lambda data: json.dumps({**data, "points": [data["points"][0] | {"setting": {"model": 1}}]}), "setting"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, change, reason: str) -> None:
    path = saved(tmp_path)
    path.write_text(change(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    with pytest.raises(SettingError, match=reason):
        read(path)
    with pytest.raises(SettingError, match="cannot be read"):
        read(tmp_path / "none.json")
