"""Parallel axes: which there are, what is brushed on them by mouse and keys, and that the trade-off view follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QUndoStack
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from paretone.errors import SettingError
from paretone.setting.setting import Setting
from paretone_app.features.studies.forms import Bound, Span, Varied, Within
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.parallel import DRAWN, nearest, parallel, sampled, within
from paretone_app.features.tradeoff.parallel_panel import ParallelPanel
from paretone_app.features.tradeoff.scene import Filter, Pool, Range
from paretone_app.shell.colours import DARK, LIGHT
from tests.app.acting import acts
from tests.app.features.tradeoff.test_front import PLAIN, point
from tests.app.features.tradeoff.using import panel_of

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
        qtbot.addWidget(one)
        one.resize(900, 400)
        one.show()
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


# --- The model --------------------------------------------------------------------------------------------------------
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
