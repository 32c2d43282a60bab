"""The trade-off plot: choosing points and moving its section, by mouse and keys."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QToolTip
from pytestqt.qtbot import QtBot

from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import Filter, PlotOptions
from paretone_app.plotting.chart import EVERYTHING
from tests.app.features.tradeoff.test_scene import point
from tests.app.features.tradeoff.using import (
    CONTROL,
    KEY,
    NO,
    POINTS,
    SHIFT,
    choose_look,
    click,
    current,
    drag,
    place_of,
    wheel,
)


# --- Choosing --------------------------------------------------------------------------------------------------------
def test_keys_walk_along_the_front(panel: TradeoffPanel) -> None:
    spy = QSignalSpy(panel.chosen)
    keys = [KEY.Key_Right, KEY.Key_Right, KEY.Key_Right, KEY.Key_Right, KEY.Key_Left, KEY.Key_Home, KEY.Key_End]
    seen = []
    for key in keys:
        QTest.keyClick(panel.plot, key)
        seen.append(current(panel))
    assert "".join(seen) == "abccbac", "d is not on the front"
    assert spy.count() == len(keys)
    assert panel.plot.accessibleDescription().startswith("c, on the front; RTF: 4")
    QTest.keyClick(panel.plot, KEY.Key_Left, SHIFT)
    assert current(panel) == "d", "with Shift along all points"
    QTest.keyClick(panel.plot, KEY.Key_Left)
    assert current(panel) == "b", "from off the front to its next point in that direction"


def test_enter_and_space_hear_and_letters_compare(panel: TradeoffPanel) -> None:
    heard, sides = QSignalSpy(panel.plot.activated), QSignalSpy(panel.plot.side_chosen)
    QTest.keyClick(panel.plot, KEY.Key_Return)
    assert heard.count() == 0, "no point is chosen yet"
    QTest.keyClick(panel.plot, KEY.Key_End)
    for key in (KEY.Key_Return, KEY.Key_Space, KEY.Key_A, KEY.Key_B):
        QTest.keyClick(panel.plot, key)
    assert heard.count() == 2 and current(panel) == "c" and [sides.at(0), sides.at(1)] == [["A"], ["B"]]


def test_a_click_chooses_and_hears_and_with_control_adds(panel: TradeoffPanel) -> None:
    heard, selected = QSignalSpy(panel.plot.activated), QSignalSpy(panel.selection_changed)
    click(panel, "b")
    assert (current(panel), heard.count(), selected.count()) == ("b", 1, 1)
    click(panel, "c", CONTROL)
    assert {one.key for one in panel.plot.selected} == {"b", "c"} and heard.count() == 1
    click(panel, "b", CONTROL)
    assert [one.key for one in panel.plot.selected] == ["c"]
    corner = panel.plot.frame.area.topRight().toPoint() + QPoint(-8, 8)
    QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, NO, corner)
    assert current(panel) == "" and panel.plot.selected == ()
    QTest.mouseClick(panel.plot, Qt.MouseButton.RightButton, NO, place_of(panel, "a"))
    assert current(panel) == "a" and heard.count() == 1, "the right button only chooses"


def test_a_rectangle_selects_what_is_in_it_and_shows_it_alone(panel: TradeoffPanel) -> None:
    spy = QSignalSpy(panel.selection_changed)
    drag(panel, panel.plot.frame.area.topLeft().toPoint() + QPoint(2, 2), place_of(panel, "b") + QPoint(12, 12))
    assert [one.key for one in panel.plot.selected] == ["a", "b"]
    assert [one.key for one in spy.at(0)[0]] == ["a", "b"]
    assert "2 points selected" in panel.details.title.text()
    drag(panel, place_of(panel, "c") - QPoint(9, 9), place_of(panel, "c") + QPoint(9, 9), SHIFT)
    assert [one.key for one in panel.plot.selected] == ["a", "b", "c"]
    panel.details.only_button.click()
    assert {one.key for one in panel.scene.points} == {"a", "b", "c"} and "1 filtered out" in panel.foot.counts.text()
    panel.details.only_button.click()
    assert panel.scene.own == 4 and panel.filter == Filter()
    QTest.keyClick(panel.plot, KEY.Key_A, CONTROL)
    assert len(panel.plot.selected) == 4


def test_hovering_tells_the_figures(panel: TradeoffPanel, qtbot: QtBot) -> None:
    QTest.mouseMove(panel.plot, place_of(panel, "b"))
    qtbot.waitUntil(lambda: "RTF: 2.00 (95 %: 1.90 to 2.10; n = 4)" in QToolTip.text())
    assert "<b>b</b>" in QToolTip.text() and "Log-mel distance (nat. log): 2.00 nat. log" in QToolTip.text()
    QTest.mouseMove(panel.plot, panel.plot.frame.area.topRight().toPoint() + QPoint(-8, 8))
    qtbot.waitUntil(lambda: panel.plot.hovered is None)


# --- Sections --------------------------------------------------------------------------------------------------------
def test_keys_zoom_around_the_point_and_move_the_section(panel: TradeoffPanel) -> None:
    plot = panel.plot
    panel.choose("b")
    before = place_of(panel, "b")
    for key in (KEY.Key_Plus, KEY.Key_Equal):
        QTest.keyClick(plot, key)
    after = place_of(panel, "b")
    assert (after - before).manhattanLength() <= 2, "what is looked at stays where it is"
    assert panel.foot.everything_button.isVisible() and plot.in_view < 4
    assert f" · {plot.in_view} in view" in panel.foot.counts.text()
    assert "points are in view" in plot.accessibleDescription()
    QTest.keyClick(plot, KEY.Key_Right, CONTROL)
    QTest.keyClick(plot, KEY.Key_Up, CONTROL)
    moved = place_of(panel, "b")
    assert moved.x() < after.x() and moved.y() > after.y()
    QTest.keyClick(plot, KEY.Key_Minus)
    assert plot.sections != EVERYTHING
    QTest.keyClick(plot, KEY.Key_0)
    assert plot.sections == EVERYTHING and panel.foot.everything_button.isHidden() and place_of(panel, "b") == before
    QTest.keyClick(plot, KEY.Key_Minus)
    assert plot.sections == EVERYTHING, "there is nothing beyond everything"


def test_the_wheel_zooms_both_axes_or_the_one_it_is_on(panel: TradeoffPanel) -> None:
    plot, before = panel.plot, place_of(panel, "a")
    wheel(panel, before, 3)
    assert (place_of(panel, "a") - before).manhattanLength() <= 2 and None not in plot.sections
    QTest.mouseDClick(plot, Qt.MouseButton.LeftButton, NO, plot.frame.area.center().toPoint())
    assert plot.sections == EVERYTHING
    area = plot.frame.area
    wheel(panel, QPoint(round(area.center().x()), round(area.bottom()) + 8), 2)
    assert plot.sections[0] is not None and plot.sections[1] is None
    panel.foot.everything_button.setFocus()
    plot.show_everything()
    assert plot.sections == EVERYTHING and plot.hasFocus()


def test_what_lies_beyond_the_section_is_neither_hit_nor_caught_but_walked_to(panel: TradeoffPanel) -> None:
    plot = panel.plot
    panel.choose("a")
    for _ in range(3):
        QTest.keyClick(plot, KEY.Key_Plus)
    assert plot.in_view == 1
    area = plot.frame.area
    drag(panel, area.topLeft().toPoint() + QPoint(1, 1), area.bottomRight().toPoint() + QPoint(60, 60))
    assert [one.key for one in plot.selected] == ["a"]
    assert plot.drawn.nearest(plot.drawn.place(panel.scene.index["c"])) is None
    QTest.keyClick(plot, KEY.Key_End)
    assert current(panel) == "c" and plot.drawn.inside[panel.scene.index["c"]], "the section follows"
    panel.choose("d")
    assert plot.drawn.inside[panel.scene.index["d"]]


def test_the_middle_button_and_a_drag_on_an_axis_move_the_section(panel: TradeoffPanel) -> None:
    plot = panel.plot
    panel.choose("b")
    for _ in range(2):
        QTest.keyClick(plot, KEY.Key_Plus)
    before, area = place_of(panel, "b"), plot.frame.area
    start = area.center().toPoint()
    drag(panel, start, start + QPoint(30, 20), button=Qt.MouseButton.MiddleButton)
    assert ((place_of(panel, "b") - before) - QPoint(30, 20)).manhattanLength() <= 3
    assert current(panel) == "b" and len(plot.selected) == 1
    before = place_of(panel, "b")
    beneath = QPoint(start.x(), round(area.bottom()) + 8)
    drag(panel, beneath, beneath + QPoint(-25, 15))
    assert abs((place_of(panel, "b") - before).x() + 25) <= 3 and place_of(panel, "b").y() == before.y()
    plot.show_everything()
    drag(panel, beneath, start)
    assert plot.sections == EVERYTHING and current(panel) != "b", "with everything shown it is a rectangle"


def test_a_section_stays_while_points_change_and_ends_with_its_axis(panel: TradeoffPanel) -> None:
    plot = panel.plot
    panel.choose("b")
    QTest.keyClick(plot, KEY.Key_Plus)
    sections = plot.sections
    panel.show_points((*POINTS, point("e", 2.1, 2.1)))
    panel.options_line.boxes["dominated"].click()
    assert plot.sections == sections
    panel.options_line.boxes["log_x"].click()
    assert plot.sections == (None, sections[1])
    choose_look(panel, PlotOptions(x="log_mel_distance", y="log_mel_distance", log_x=True))
    assert plot.sections == (None, sections[1])
    choose_look(panel, PlotOptions(x="log_mel_distance", y="real_time_factor"))
    assert plot.sections == EVERYTHING


def test_axes_are_logarithmic_one_by_one_and_files_follow(panel: TradeoffPanel, tmp_path: Path) -> None:
    x_before, y_before = place_of(panel, "b").x(), place_of(panel, "b").y()
    panel.options_line.boxes["log_x"].click()
    assert panel.scene.logarithmic == (True, False)
    place = place_of(panel, "b")
    middle = (place_of(panel, "a").x() + place_of(panel, "c").x()) / 2
    assert abs(place.x() - middle) <= 1 and place.x() != x_before, "2 is in the middle of 1 and 4"
    assert place.y() == y_before
    panel.show_points((*POINTS, point("e", 2.0, 0.0)))
    panel.options_line.boxes["log_y"].click()
    assert panel.foot.remarks.text() == "1 point not shown: Log-mel distance is 0, outside a logarithmic axis."
    panel.choose("b")
    QTest.keyClick(panel.plot, KEY.Key_Plus)
    for ending in ("svg", "png", "csv"):
        panel.write(tmp_path / f"out.{ending}")
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4, "all that are shown, also beyond the section"
    assert [row["x (logarithmic): RTF"] for row in rows] == ["1.0", "2.0", "3.0", "4.0"]
    texts = " ".join(text.strip() for text in ElementTree.parse(tmp_path / "out.svg").getroot().itertext())
    assert "A section of the axes" in texts and "outside a logarithmic axis" in texts
