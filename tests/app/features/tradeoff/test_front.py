"""Along the front: why a point is where it is, and from where on a difference is heard; selections as files: written,
read, found again in another person's studies, and refused in a sentence; and parallel axes: what is brushed on them by
mouse and keys, and that the trade-off view follows."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QUndoStack
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from paretone.errors import SettingError
from paretone.measure.estimates import Estimate
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone_app.features.studies.forms import Bound, Span, Varied, Within
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.parallel import DRAWN, nearest, parallel, sampled, within
from paretone_app.features.tradeoff.parallel_panel import ParallelPanel
from paretone_app.features.tradeoff.saved import find, read, remembered, selection_of, write
from paretone_app.features.tradeoff.scene import (
    Crossing,
    Filter,
    PlotOptions,
    Pool,
    Range,
    Scene,
    in_words,
    limit,
    scene,
)
from paretone_app.features.tradeoff.words import why, why_html
from paretone_app.results.points import STUDY, TAKE, Point
from paretone_app.shell.colours import DARK, LIGHT
from tests.app.acting import acts
from tests.app.conftest import on_screen
from tests.app.features.tradeoff.using import panel_of

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


def test_every_change_is_told_with_what_it_does_alone_and_a_single_one_is_all() -> None:
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
SELECTED = point("a", PLAIN, 1, 0.0), point("b", PRUNED, 2, 0.1), point("c", BOTH, 3, 0.2)


def saved(folder: Path) -> Path:
    write(selection_of(VIEW, SELECTED[:2], SELECTED[1]), folder / "selection.json")
    return folder / "selection.json"


def test_what_was_selected_is_found_in_another_copy_of_the_study_or_said_to_be_missing(tmp_path: Path) -> None:
    there = read(saved(tmp_path))
    assert json.loads(there.view) == json.loads(VIEW) and there.current == there.points[1]
    theirs = [replace(one, key=f"their {one.key}", folder=Path("elsewhere")) for one in SELECTED]
    found = find(there, theirs)
    assert found == (("their a", "their b"), "their b", "")
    assert find(there, [replace(one, source="Under another title") for one in theirs]) == found
    other = replace(theirs[0], key="the same elsewhere", source="Another study")
    assert find(there, [*theirs, other]) == found, "the study of that title comes first"
    keys, current, remark = find(there, SELECTED[:1])
    assert (keys, current) == (("a",), "")
    assert remark.startswith("1 selected setting is not here, such as “setting b”; open the study “A study”")
    with pytest.raises(SettingError, match="None of the selected settings is here; open the study “A study” first"):
        find(there, SELECTED[2:])


def test_takes_are_nobody_elses() -> None:
    take = point("d", BOTH, 4, 0.3, kind=TAKE)
    with pytest.raises(SettingError, match="Select points of a study first"):
        selection_of(VIEW, [take], take)
    assert len(selection_of(VIEW, [take, SELECTED[0]], take).points) == 1
    assert selection_of(VIEW, [take, SELECTED[0]], take).current is None


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


NO = Qt.KeyboardModifier.NoModifier
POINTS = tuple(
    point(str(at), Setting("f5-mini", PLAIN.options.replace(guidance=0.1 * at)), 1.0 + at, 0.1 * at**2)
    for at in range(5)
)
SPEED = "speed_up"


@pytest.fixture
def panels(qtbot: QtBot) -> tuple[TradeoffPanel, ParallelPanel]:
    tradeoff, beside = panel_of(), ParallelPanel(LIGHT, QUndoStack(), *acts(2))
    for one in (tradeoff, beside):
        on_screen(one, qtbot, 900, 400)
    beside.follow(tradeoff)
    tradeoff.show_points(POINTS)
    return tradeoff, beside


def drag(panel: ParallelPanel, axis: int, start: float, end: float) -> None:
    axes = panel.axes
    places = [axes.place(axis, height).toPoint() for height in (start, (start + end) / 2, end)]
    QTest.mousePress(axes, Qt.MouseButton.LeftButton, NO, places[0])
    for place in places[1:]:
        QTest.mouseMove(axes, place)
    QTest.mouseRelease(axes, Qt.MouseButton.LeftButton, NO, places[-1])


def kept(panel: TradeoffPanel) -> set[str]:
    return {one.key for one in panel.scene.points}


# --- Parallel axes ----------------------------------------------------------------------------------------------------
def test_knobs_come_first_and_only_what_differs_has_an_axis() -> None:
    shown = parallel(Pool(POINTS), Filter())
    assert shown.axes[0].title.startswith("Guidance")
    assert [one.name for one in shown.axes][1:] == [SPEED, "log_mel_distance"]
    assert np.nanmin(shown.heights) > 0 and np.nanmax(shown.heights) < 1 and shown.inside.all()
    assert parallel(Pool(POINTS[:1]), Filter()).axes == () and parallel(Pool(), Filter()).axes == ()


def test_what_is_brushed_becomes_a_study_within_it() -> None:
    pool = Pool(POINTS)
    guidance = next(one.name for one in pool.axes if one.knob)
    ranges = (Range(guidance, 0.05, 0.35), Range(SPEED, 2.0, 9.0), Range("log_mel_distance", 0.0, 0.5))
    found = within(parallel(pool, Filter(ranges=ranges)))
    bounds = Bound(SPEED, "at_least", 2.0), Bound("log_mel_distance", "at_most", 0.5)
    assert found == Within("f5-mini", (Span("", "guidance", (0.1, 0.2)),), bounds)
    assert found.spans[0].varied(searching=True) == Varied("", "guidance", "0.1..0.2")
    assert found.spans[0].varied(searching=False) == Varied("", "guidance", "0.1, 0.2")
    only_figures = within(parallel(pool, Filter(ranges=ranges[1:])))
    assert only_figures.spans == (Span("", "guidance", (0.1, 0.2)),), "as far as points within go"


@pytest.mark.parametrize(
    ("points", "ranges", "says"),
    [
        (POINTS, (), "Brush ranges first."),
        (POINTS, (Range(SPEED, 90.0, 99.0),), "no point lies within"),
        ((POINTS[0], point("x", replace(PLAIN, model="lm-mini"), 1.5, 1)), (Range(SPEED, 0, 9),), "of several models"),
        ((point("a", PLAIN, 1, 1), point("b", PLAIN, 2, 1)), (Range(SPEED, 0, 9),), "do not differ in any knob"),
    ],
)
def test_what_is_no_study_is_said(points: tuple, ranges: tuple[Range, ...], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        within(parallel(Pool(points), Filter(ranges=ranges)))


def test_a_range_filters_all_and_those_outside_stay_in_sight() -> None:
    pool = Pool(POINTS)
    chosen = Filter(ranges=(Range(SPEED, 2.0, 4.0),))
    assert pool.wanted(chosen).tolist() == [False, True, True, True, False]
    shown = parallel(pool, chosen)
    assert len(shown.points) == 5 and shown.inside.tolist() == [False, True, True, True, False]
    assert "Brushed from 2.00 to 4.00. 3 of 5 points in all ranges" in shown.in_words(1)
    assert shown.brushed(1, 5.0, 3.0) == (Range(SPEED, 3.0, 5.0),), "from either end"
    assert shown.brushed(1, 3.0, 3.0) == () and len(shown.brushed(2, 0.0, 0.1)) == 2
    incomplete = replace(POINTS[2], figures={"log_mel_distance": POINTS[2].figures["log_mel_distance"]})
    assert Pool([*POINTS[:2], incomplete]).wanted(chosen).tolist() == [False, True, False], "no value lies in no range"


def test_the_nearest_line_is_found_between_axes_and_of_thousands_some_are_drawn() -> None:
    heights = np.array([[0.0, 1.0], [1.0, 0.0], [0.2, np.nan]])
    assert nearest(heights, [True, True, True], 0.25, 0.25) == (0, 0.0)
    assert nearest(heights, [False, True, True], 0.25, 0.25)[0] == 1, "not one that is outside"
    assert nearest(heights, [False, False, True], 0.25, 0.25)[0] == -1, "not one that has no value there"
    found = sampled(np.arange(10_001))
    assert len(found) == DRAWN and found[0] == 0 and found[-1] == 10_000


# --- The panel --------------------------------------------------------------------------------------------------------
def test_a_range_is_brushed_moved_and_cleared_with_the_mouse(panels: tuple[TradeoffPanel, ParallelPanel]) -> None:
    tradeoff, beside = panels
    assert not beside.clear_button.isEnabled()
    drag(beside, 1, 0.4, 0.9)
    (brush,) = tradeoff.filter.ranges
    assert brush.axis == SPEED and brush.low == pytest.approx(1 + 4 * 0.4, abs=0.15)
    assert kept(tradeoff) == {"2", "3"} and "2 of 5 points" in beside.counts.text()
    drag(beside, 1, 0.6, 0.3)
    (moved,) = tradeoff.filter.ranges
    assert moved.high - moved.low == pytest.approx(brush.high - brush.low) and moved.low < brush.low
    assert kept(tradeoff) == {"1", "2"}
    drag(beside, 2, 0.0, 0.12)
    assert len(tradeoff.filter.ranges) == 2 and kept(tradeoff) == {"1"}, "all axes filter together"
    QTest.mouseDClick(beside.axes, Qt.MouseButton.LeftButton, NO, beside.axes.place(2, 0.8).toPoint())
    assert kept(tradeoff) == {"1", "2"}
    beside.clear_button.click()
    assert kept(tradeoff) == {one.key for one in POINTS} and not tradeoff.filter.ranges


def test_a_range_is_brushed_and_cleared_with_the_keyboard(panels: tuple[TradeoffPanel, ParallelPanel]) -> None:
    tradeoff, beside = panels
    axes = beside.axes
    axes.setFocus()
    QTest.keyClick(axes, Qt.Key.Key_Left)
    assert axes.cursor_text().startswith("Guidance")
    QTest.keyClick(axes, Qt.Key.Key_Right)
    assert axes.cursor_text().startswith("Speed-up")
    for _ in range(3):
        QTest.keyClick(axes, Qt.Key.Key_Down)
    assert kept(tradeoff) == {"0", "1", "2", "3"}
    for _ in range(3):
        QTest.keyClick(axes, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    assert kept(tradeoff) == {"1", "2", "3"} and "3 of 5 points" in axes.accessibleDescription()
    for _ in range(40):
        QTest.keyClick(axes, Qt.Key.Key_Down)
    (brush,) = tradeoff.filter.ranges
    assert brush.low < brush.high, "its ends do not cross"
    QTest.keyClick(axes, Qt.Key.Key_Delete)
    assert not tradeoff.filter.ranges


def test_a_click_chooses_the_nearest_line_and_the_plot_follows(panels: tuple[TradeoffPanel, ParallelPanel]) -> None:
    tradeoff, beside = panels
    shown = beside.axes.shown
    middle = (beside.axes.place(1, shown.heights[3, 1]) + beside.axes.place(2, shown.heights[3, 2])) / 2
    assert beside.axes.tip_at(middle)[0] == "setting 3"
    QTest.mouseClick(beside.axes, Qt.MouseButton.LeftButton, NO, middle.toPoint())
    assert tradeoff.plot.current.key == "3" == beside.axes.current
    tradeoff.plot.walk(-1)
    assert beside.axes.current == tradeoff.plot.current.key != "3", "and the other way round"
    QTest.mouseClick(beside.axes, Qt.MouseButton.LeftButton, NO, QPoint(2, 2))
    assert tradeoff.plot.current.key == "2"


def test_what_is_brushed_is_seen_and_copied(panels: tuple[TradeoffPanel, ParallelPanel]) -> None:
    tradeoff, beside = panels
    before = beside.axes.grab().toImage()
    drag(beside, 1, 0.4, 0.9)
    assert beside.axes.grab().toImage() != before
    assert beside.axes.as_text().splitlines()[0].startswith("setting\tGuidance")
    assert [row.split("\t")[0] for row in beside.axes.as_text().splitlines()[1:]] == ["setting 2", "setting 3"]
    beside.set_colours(DARK)
    assert beside.axes.grab().toImage() != before
    tradeoff.show_points(POINTS[:1])
    assert beside.axes.cursor_text() == "No two points differ." and beside.axes.as_text()
    beside.axes.grab()
