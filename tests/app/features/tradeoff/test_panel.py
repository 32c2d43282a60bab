"""The Trade-off panel as people use it: real key presses and clicks on the real widgets."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent, QWheelEvent
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot
from shiboken6 import createdByPython

from app.features.tradeoff.model.points import Sound, published_points
from app.features.tradeoff.model.scene import BASELINE, Filter, PlotOptions
from app.features.tradeoff.model.words import Reference
from app.features.tradeoff.panel import TradeoffPanel
from app.plotting.sections import EVERYTHING
from app.shell.theme import DARK, LIGHT
from engine.errors import PlainError
from engine.measure.estimates import Estimate
from engine.studies.published import published
from tests.app.features.tradeoff.many_points import many
from tests.app.features.tradeoff.test_scene import FAST, PLAIN, point

KEY, NO, CONTROL, SHIFT = (
    Qt.Key,
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
)
SOUNDS = (Sound("1" * 32, "One sentence.", "slt", 0), Sound("2" * 32, "Another one.", "rms", 0))
POINTS = (
    point("a", 1.0, 4.0, sounds=SOUNDS, techniques=("ditreducio",), setting=FAST.bare),
    point("b", 2.0, 2.0, sounds=SOUNDS[:1], techniques=("ditreducio", "steps")),
    point("c", 4.0, 1.0, sounds=SOUNDS, setting=PLAIN.bare),
    point("d", 3.0, 4.0, sounds=(), techniques=("steps",)),
)


@pytest.fixture
def panel(qtbot: QtBot) -> TradeoffPanel:
    made = TradeoffPanel(LIGHT, published_points(published()))
    qtbot.addWidget(made)
    made.resize(1000, 640)
    made.set_options(PlotOptions())
    made.show_points(POINTS)
    made.set_reasons("", "", "")
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    made.plot.setFocus()
    qtbot.waitUntil(made.plot.hasFocus)
    return made


def place_of(panel: TradeoffPanel, key: str) -> QPoint:
    return panel.plot.drawn.place(panel.scene.index[key]).toPoint()


def click(panel: TradeoffPanel, key: str, modifier: Qt.KeyboardModifier = NO) -> None:
    QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, modifier, place_of(panel, key))


def drag(
    panel: TradeoffPanel,
    start: QPoint,
    end: QPoint,
    modifier: Qt.KeyboardModifier = NO,
    button: Qt.MouseButton = Qt.MouseButton.LeftButton,
) -> None:
    def send(kind: QEvent.Type, place: QPoint, held: Qt.MouseButton) -> None:
        at = QPointF(place)
        event = QMouseEvent(kind, at, panel.plot.mapToGlobal(at), button, held, modifier)
        QApplication.sendEvent(panel.plot, event)

    send(QEvent.Type.MouseButtonPress, start, button)
    send(QEvent.Type.MouseMove, (start + end) / 2, button)
    send(QEvent.Type.MouseMove, end, button)
    panel.plot.grab()
    send(QEvent.Type.MouseButtonRelease, end, Qt.MouseButton.NoButton)


def current(panel: TradeoffPanel) -> str:
    return panel.plot.current.key if panel.plot.current is not None else ""


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
    heard, sides = QSignalSpy(panel.hear_wanted), QSignalSpy(panel.side_wanted)
    QTest.keyClick(panel.plot, KEY.Key_Return)
    assert heard.count() == 0, "no point is chosen yet"
    QTest.keyClick(panel.plot, KEY.Key_End)
    for key in (KEY.Key_Return, KEY.Key_Space, KEY.Key_A, KEY.Key_B):
        QTest.keyClick(panel.plot, key)
    assert heard.count() == 2
    assert [(heard.at(0)[0].key, heard.at(0)[1])] == [("c", SOUNDS[0])]
    assert [(one[0], one[1].key) for one in (sides.at(0), sides.at(1))] == [("A", "c"), ("B", "c")]


def test_a_click_chooses_and_hears_and_with_control_adds(panel: TradeoffPanel) -> None:
    heard, selected = QSignalSpy(panel.hear_wanted), QSignalSpy(panel.selection_changed)
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
    area = panel.plot.frame.area
    drag(panel, area.topLeft().toPoint() + QPoint(2, 2), place_of(panel, "b") + QPoint(12, 12))
    assert [one.key for one in panel.plot.selected] == ["a", "b"]
    assert [one.key for one in spy.at(0)[0]] == ["a", "b"]
    assert "2 points selected" in panel.details._title.text()
    drag(panel, place_of(panel, "c") - QPoint(9, 9), place_of(panel, "c") + QPoint(9, 9), SHIFT)
    assert [one.key for one in panel.plot.selected] == ["a", "b", "c"]
    panel.details.only_button.click()
    assert {one.key for one in panel.scene.points} == {"a", "b", "c"} and "1 filtered out" in panel.counts
    panel.details.only_button.click()
    assert panel.scene.own == 4 and panel.filter == Filter()
    QTest.keyClick(panel.plot, KEY.Key_A, CONTROL)
    assert len(panel.plot.selected) == 4


def test_what_others_choose_is_shown_without_an_echo(panel: TradeoffPanel) -> None:
    spies = [QSignalSpy(one) for one in (panel.chosen, panel.selection_changed, panel.hear_wanted)]
    panel.choose("b")
    assert current(panel) == "b" and panel.details._title.text() == "b"
    panel.choose("nobody")
    assert current(panel) == "b"
    panel.select(["a", "c", "nobody"])
    assert [one.key for one in panel.plot.selected] == ["a", "c"]
    panel.select(["c"])
    assert current(panel) == "c"
    assert [spy.count() for spy in spies] == [0, 0, 0]


def test_hovering_tells_the_figures(panel: TradeoffPanel, qtbot: QtBot) -> None:
    QTest.mouseMove(panel.plot, place_of(panel, "b"))
    qtbot.waitUntil(lambda: "RTF: 2 (95 %: 1.9 to 2.1; n = 4)" in QToolTip.text())
    assert "<b>b</b>" in QToolTip.text() and "Log-mel distance (nat. log): 2 nat. log" in QToolTip.text()
    corner = panel.plot.frame.area.topRight().toPoint() + QPoint(-8, 8)
    QTest.mouseMove(panel.plot, corner)
    qtbot.waitUntil(lambda: panel.plot._hovered is None)


# --- Beside the plot -------------------------------------------------------------------------------------------------
def test_the_difference_to_the_baseline_or_to_a_is_shown(panel: TradeoffPanel) -> None:
    panel.choose("a")
    assert "Against its baseline:" in panel.details.text and "DiTReducio: off → δ 0.1" in panel.details.text
    panel.set_a(Reference("A", PLAIN), "c")
    assert "Against A:" in panel.details.text
    panel.choose("c")
    assert "Against A" not in panel.details.text, "A itself does not differ from A"
    panel.set_a(None, "")
    panel.choose("a")
    assert "Against its baseline:" in panel.details.text
    assert "<b>1</b>" in panel.details.text and "0.9–1.1" in panel.details.text and "n = 4" in panel.details.text


def test_the_chosen_sentence_is_kept_from_point_to_point(panel: TradeoffPanel) -> None:
    panel.choose("a")
    assert panel.details.sound == SOUNDS[0]
    panel.details.sentence.setCurrentIndex(1)
    panel.details.sentence.activated.emit(1)
    assert panel.details.sound == SOUNDS[1]
    panel.choose("b")
    assert panel.details.sound == SOUNDS[0] and panel.details.sentence.isHidden(), "it has no other"
    panel.choose("c")
    assert panel.details.sound == SOUNDS[1]


def test_what_cannot_be_done_says_why(panel: TradeoffPanel) -> None:
    details = panel.details
    assert not details.hear_button.isEnabled() and details.hear_button.toolTip() == "Select a point first."
    panel.choose("d")
    assert details.a_button.toolTip() == "This setting has no finished take."
    panel.choose("a")
    assert details.a_button.isEnabled() and details.use_button.isEnabled()
    panel.set_reasons("There is no device.", "It is there already.", "Load the model.")
    assert details.hear_button.toolTip() == "There is no device." and not details.hear_button.isEnabled()
    assert details.a_button.isEnabled(), "what cannot be heard can still be compared"
    assert details.keep_button.toolTip() == "It is there already."
    asked = [QSignalSpy(one) for one in (panel.keep_wanted, panel.use_wanted)]
    panel.set_reasons("", "", "")
    details.keep_button.click()
    details.use_button.click()
    assert [(spy.count(), spy.at(0)[0].key) for spy in asked] == [(1, "a"), (1, "a")]


# --- Axes, filters, what is shown ------------------------------------------------------------------------------------
def test_axes_are_chosen_with_their_direction(panel: TradeoffPanel) -> None:
    offered = [panel.options_line.x_choice.itemText(row) for row in range(panel.options_line.x_choice.count())]
    assert offered == ["RTF ↓", "Log-mel distance (nat. log) ↓"]
    panel.options_line.x_choice.setCurrentIndex(1)
    panel.options_line.x_choice.activated.emit(1)
    assert panel.options.x == "log_mel_distance" and "Mean absolute" in panel.options_line.x_choice.toolTip()
    panel.show_points(POINTS[:2])
    assert panel.options.x == "log_mel_distance", "what the user chose stays"


def test_what_an_axis_is_called_is_cut_off_with_an_ellipsis_and_told_whole(panel: TradeoffPanel) -> None:
    chooser, whole = panel.options_line.y_choice, "Log-mel distance (nat. log) ↓"
    panel.resize(1200, 640)
    assert chooser.shown == whole
    panel.resize(panel.minimumSizeHint())
    assert chooser.shown != whole and chooser.shown.endswith("…") and whole.startswith(chooser.shown[:-1])
    assert chooser.toolTip().startswith(f"{whole}\n") and chooser.currentText() == whole
    assert not panel.options_line.x_choice.shown.endswith("…")


def test_a_study_brings_its_speed_up_before_the_user_has_chosen(qtbot: QtBot) -> None:
    made = TradeoffPanel(LIGHT)
    qtbot.addWidget(made)
    assert made.options.x == "real_time_factor"
    made.show_points(many(3))
    assert made.options.x == "speed_up" and made.options_line.x_choice.currentData() == "speed_up"


def test_filters_and_techniques(panel: TradeoffPanel) -> None:
    legend = panel.legend.offered
    assert list(legend) == [BASELINE, "ditreducio", "steps"]
    assert legend["steps"].text() == "Step pruning 2" and legend["steps"].accessibleName() == "Step pruning: 2 points"
    QTest.mouseClick(legend["steps"], Qt.MouseButton.LeftButton)
    assert {one.key for one in panel.scene.points} == {"a", "c"} and panel.filter_line.clear_button.isEnabled()
    QTest.mouseClick(panel.filter_line.clear_button, Qt.MouseButton.LeftButton)
    assert panel.scene.own == 4 and legend["steps"].isChecked()
    panel.legend.show_only("ditreducio")
    assert {one.key for one in panel.scene.points} == {"a"}
    panel.clear_filter()
    QTest.keyClicks(panel.filter_line.search, "rms")
    assert {one.key for one in panel.scene.points} == {"a", "c"}
    QTest.keyClicks(panel.filter_line.search, " nothing like it")
    assert panel.scene.own == 0 and panel.remarks == "The filter hides all points; press Clear to show them."
    panel.clear_filter()
    voice = panel.filter_line.combos["voice"]
    voice.setCurrentIndex(voice.findData("slt"))
    voice.activated.emit(voice.currentIndex())
    assert {one.key for one in panel.scene.points} == {"a", "b", "c"}
    panel.show_points(POINTS[3:])
    assert panel.filter.voice == "", "nobody speaks in that voice any more"


def test_what_is_chosen_stays_while_it_is_shown(panel: TradeoffPanel) -> None:
    panel.choose("d")
    panel.options_line.intervals_box.click()
    assert current(panel) == "d" and not panel.options.intervals
    panel.options_line.dominated_box.click()
    assert current(panel) == "" and "1 dominated not shown" in panel.counts


def test_published_results_are_switchable(panel: TradeoffPanel) -> None:
    panel.options_line.published_box.click()
    assert panel.remarks.startswith("No published results here: no paper reports Log-mel distance")
    own = point("e", 1.0, 1.0)
    figures = {**own.figures, "ops_ratio": own.figures["real_time_factor"]}
    panel.show_points([point("e", 1.0, 1.0, figures=figures, baseline=figures)])
    panel.set_options(PlotOptions(x="real_time_factor", y="ops_ratio", ratios=True, published=True))
    ghosts = [one for one in panel.scene.points if one.published]
    assert ghosts and panel.options_line.ratios_box.isChecked() and panel.options_line.published_box.isChecked()
    click(panel, ghosts[3].key)
    assert "NVIDIA RTX 3090" in panel.details.text
    assert panel.details.hear_button.toolTip() == "Published results have no audio."


def test_nothing_to_show_says_what_to_do(qtbot: QtBot) -> None:
    made = TradeoffPanel(LIGHT, published_points(published()))
    qtbot.addWidget(made)
    assert made.invitation.startswith("Reading")
    made.show_points(())
    assert "run a study" in made.invitation and not made.invited_button.isHidden()
    with qtbot.waitSignal(made.open_wanted):
        made.invited_button.click()
    made.show_points(POINTS)
    assert made.invitation == ""


# --- Sections --------------------------------------------------------------------------------------------------------
def wheel(panel: TradeoffPanel, place: QPoint, notches: int) -> None:
    at = QPointF(place)
    event = QWheelEvent(
        at,
        panel.plot.mapToGlobal(at),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        NO,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(panel.plot, event)


def test_keys_zoom_around_the_point_and_move_the_section(panel: TradeoffPanel) -> None:
    plot = panel.plot
    panel.choose("b")
    before = place_of(panel, "b")
    for key in (KEY.Key_Plus, KEY.Key_Equal):
        QTest.keyClick(plot, key)
    after = place_of(panel, "b")
    assert (after - before).manhattanLength() <= 2, "what is looked at stays where it is"
    assert panel.everything_button.isVisible() and plot.in_view < 4
    assert f" · {plot.in_view} in view" in panel.counts
    assert "points are in view" in plot.accessibleDescription()
    QTest.keyClick(plot, KEY.Key_Right, CONTROL)
    QTest.keyClick(plot, KEY.Key_Up, CONTROL)
    moved = place_of(panel, "b")
    assert moved.x() < after.x() and moved.y() > after.y()
    QTest.keyClick(plot, KEY.Key_Minus)
    assert plot.sections != EVERYTHING
    QTest.keyClick(plot, KEY.Key_0)
    assert plot.sections == EVERYTHING and panel.everything_button.isHidden() and place_of(panel, "b") == before
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
    panel.everything_button.click()
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
    panel.options_line.dominated_box.click()
    assert plot.sections == sections
    panel.options_line.log_x_box.click()
    assert plot.sections == (None, sections[1])
    panel.set_options(PlotOptions(x="log_mel_distance", y="log_mel_distance", log_x=True))
    assert plot.sections == (None, sections[1])
    panel.set_options(PlotOptions(x="log_mel_distance", y="real_time_factor"))
    assert plot.sections == EVERYTHING


def test_axes_are_logarithmic_one_by_one_and_files_follow(panel: TradeoffPanel, tmp_path: Path) -> None:
    x_before, y_before = place_of(panel, "b").x(), place_of(panel, "b").y()
    panel.options_line.log_x_box.click()
    assert panel.scene.logarithmic == (True, False)
    place = place_of(panel, "b")
    middle = (place_of(panel, "a").x() + place_of(panel, "c").x()) / 2
    assert abs(place.x() - middle) <= 1 and place.x() != x_before, "2 is in the middle of 1 and 4"
    assert place.y() == y_before
    panel.show_points((*POINTS, point("e", 2.0, 0.0)))
    panel.options_line.log_y_box.click()
    assert panel.remarks == "1 point not shown: Log-mel distance is 0, outside a logarithmic axis."
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


# --- Between starts --------------------------------------------------------------------------------------------------
def test_what_is_shown_comes_back_with_the_points(panel: TradeoffPanel, qtbot: QtBot) -> None:
    panel.set_options(
        PlotOptions(x="log_mel_distance", y="real_time_factor", published=True, dominated=False, log_x=True)
    )
    panel.set_filter(Filter(source="S", words="a", hidden=frozenset({"steps"})))
    kept = panel.remembered
    made = TradeoffPanel(LIGHT, published_points(published()))
    qtbot.addWidget(made)
    made.recall(kept)
    assert made.remembered == kept, "before there is any point"
    made.show_points((point("t", 1.0, 1.0, source="Takes"),))
    assert made.filter.source == "" and made.remembered == kept, "the study is not there yet"
    made.show_points(POINTS)
    assert made.options == panel.options and made.filter == panel.filter
    assert not made.legend.buttons["steps"].isChecked() and made.filter_line.search.text() == "a"
    assert made.options_line.log_x_box.isChecked() and made.options_line.published_box.isChecked()
    made.show_points(many(3))
    assert made.options.x == "log_mel_distance", "the axes are the user's"
    made.clear_filter()
    assert made.filter == Filter()


# --- Looks and files -------------------------------------------------------------------------------------------------
def test_both_themes_and_every_kind_of_point_are_painted(panel: TradeoffPanel) -> None:
    panel.set_marks({"a": "A", "c": "B", "d": "Setup"})
    panel.choose("b")
    light = panel.plot.grab().toImage()
    panel.set_colours(DARK)
    dark = panel.plot.grab().toImage()
    assert light != dark and current(panel) == "b"
    assert dark.pixelColor(6, 6).lightness() < 60 < light.pixelColor(6, 6).lightness()


def test_a_badge_is_whole_at_the_top_of_the_plot(panel: TradeoffPanel) -> None:
    plot, sizes = panel.plot, []
    panel.choose("d")
    QTest.keyClick(plot, KEY.Key_Plus)
    for _ in range(2):
        before = plot.grab().toImage()
        panel.set_marks({"d": "A"})
        after = plot.grab().toImage()
        panel.set_marks({})
        pixels = itertools.product(range(after.width()), range(after.height()))
        sizes.append(sum(before.pixel(*one) != after.pixel(*one) for one in pixels))
        area = plot.frame.area
        plot.move_section(0.0, (area.top() - place_of(panel, "d").y()) / area.height())
    assert place_of(panel, "d").y() == pytest.approx(plot.frame.area.top(), abs=1)
    assert sizes[0] > 50 and sizes[1] == pytest.approx(sizes[0], rel=0.2), "as much of it is seen as further down"


def test_two_thousand_points_can_be_selected_and_painted(panel: TradeoffPanel) -> None:
    points = many(2000)
    panel.show_points(points)
    assert panel.scene.own == 2000 and panel.counts.startswith("2000 points")
    drawn = panel.plot.drawn
    drag(panel, panel.plot.frame.area.topLeft().toPoint(), panel.plot.frame.area.center().toPoint())
    middle = panel.plot.frame.area.center()
    inside = {
        one.key
        for index, one in enumerate(panel.scene.points)
        if drawn.place(index).x() <= middle.toPoint().x() and drawn.place(index).y() <= middle.toPoint().y()
    }
    assert {one.key for one in panel.plot.selected} == inside and 0 < len(inside) < 2000
    panel.plot.grab()


def test_files_stand_by_themselves(panel: TradeoffPanel, tmp_path: Path) -> None:
    panel.set_filter(Filter(hidden=frozenset({"steps"})))
    for ending in ("svg", "png", "csv"):
        panel.write(tmp_path / f"out.{ending}")
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["title"], row["front"]) for row in rows] == [("a", "1"), ("c", "1")]
    assert (rows[0]["real_time_factor"], rows[0]["real_time_factor_low"]) == ("1.0", "0.9")
    assert rows[0]["real_time_factor_n"] == "4" and "ditreducio" in rows[0]["setting"]
    assert rows[0]["x: RTF"] == "1.0"
    root = ElementTree.parse(tmp_path / "out.svg").getroot()
    texts = " ".join(text.strip() for text in root.itertext())
    assert "Log-mel distance (nat. log) against RTF" in texts and "DiTReducio" in texts
    assert "without: Step pruning" in texts
    image = QImage(str(tmp_path / "out.png"))
    assert image.width() == 2200 and not image.isNull()
    with pytest.raises(PlainError, match="choose one of these endings"):
        panel.write(tmp_path / "out.pdf")
    with pytest.raises(PlainError, match="could not be written"):
        panel.write(tmp_path / "nowhere" / "out.csv")


def test_all_points_are_copied_as_a_table(panel: TradeoffPanel) -> None:
    QTest.keyClick(panel.plot, KEY.Key_C, CONTROL)
    rows = list(csv.DictReader(QApplication.clipboard().text().splitlines(), delimiter="\t"))
    assert [(row["title"], row["front"], row["real_time_factor"]) for row in rows] == [
        ("a", "1", "1.0"),
        ("b", "1", "2.0"),
        ("d", "0", "3.0"),
        ("c", "1", "4.0"),
    ]


def test_the_export_menu_asks_for_each_kind_of_file(panel: TradeoffPanel) -> None:
    wanted, actions = QSignalSpy(panel.export_wanted), panel.export_button.menu().actions()
    assert all(createdByPython(one) for one in actions), "Qt's own would lose their wrappers"
    for action in actions:
        action.trigger()
    assert [wanted.at(place) for place in range(wanted.count())] == [["svg"], ["png"], ["csv"]]


def test_what_a_judge_makes_of_the_reference_speech_is_drawn_and_written(panel: TradeoffPanel, tmp_path: Path) -> None:
    speed = {"real_time_factor": Estimate(1.0, 0.9, 1.1, 4, 2)}
    figures = [{**speed, "word_error_rate": Estimate(rate, rate, rate, 4, 2)} for rate in (0.1, 0.2)]
    floors = {"word_error_rate": Estimate(0.01, 0.0, 0.02, 10, 10)}
    with_floor, without = (
        [point(name, 1.0, 1.0, figures=own, floors=floor) for name, own in zip("ab", figures, strict=True)]
        for floor in (floors, {})
    )
    panel.show_points(without)
    panel.set_options(PlotOptions(y="word_error_rate"))
    panel.write(tmp_path / "without.svg")
    panel.show_points(with_floor)
    assert panel.plot.frame.up.low < 0.01, "the axis has room for it"
    for ending in ("svg", "csv"):
        panel.write(tmp_path / f"with.{ending}")
    texts = [" ".join(ElementTree.parse(tmp_path / name).getroot().itertext()) for name in ("without.svg", "with.svg")]
    assert ["reference speech" in text for text in texts] == [False, True]
    assert "points beyond it cannot be told apart" in texts[1]
    with (tmp_path / "with.csv").open(encoding="utf-8") as file:
        assert [row["word_error_rate_of_reference_speech"] for row in csv.DictReader(file)] == ["0.01", "0.01"]


def test_everything_is_reachable_and_has_a_name(panel: TradeoffPanel, qtbot: QtBot) -> None:
    for widget in (
        panel.options_line.x_choice,
        panel.options_line.y_choice,
        *panel.filter_line.combos.values(),
        panel.filter_line.search,
        panel.details.sentence,
    ):
        assert widget.accessibleName() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert panel.plot.accessibleName() == "Trade-off plot"
    focused = panel.plot.grab().toImage()
    panel.filter_line.search.setFocus()
    qtbot.waitUntil(lambda: not panel.plot.hasFocus())
    assert panel.plot.grab().toImage() != focused, "the focus can be seen"
    titles = [action.text().partition("\t")[0] for action in panel.plot.actions()]
    own = ["Hear", "Set A", "Set B", "Add to Takes", "Use in Setup", "Show everything"]
    assert titles == [*own, "Copy as table", "Show as table"]
