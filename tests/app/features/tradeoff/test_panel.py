"""The trade-off panel: its plot, where points are chosen and the section is moved by mouse and keys, figures of points,
axes, filters, what comes back after a restart, and what is painted and written to files."""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent, QWheelEvent
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.figures.glyphs import HUES, MORE_LIGHT, SERIES_LIGHT, SERIES_ON_ANY, Glyph
from paretone.measure.estimates import Estimate
from paretone.studies.report import scatter
from paretone.studies.results import read
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import BASELINE, Filter, PlotOptions, Pool, scene
from paretone_app.features.tradeoff.styles import PointStyles, described
from paretone_app.features.tradeoff.words import Reference
from paretone_app.plotting.chart import EVERYTHING
from paretone_app.results.points import Scores, published_points, study_points
from paretone_app.shell.colours import DARK, LIGHT
from tests.app.conftest import chosen, in_front, on_screen
from tests.app.features.tradeoff.test_scene import PLAIN, point
from tests.app.features.tradeoff.using import POINTS, SOUNDS, choose_look, panel_of
from tests.engine.studies.small import finished, study
from tests.tools.many_points import many

KEY, NO, LEFT = Qt.Key, Qt.KeyboardModifier.NoModifier, Qt.MouseButton.LeftButton
CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def panel(qtbot: QtBot) -> TradeoffPanel:
    made = panel_of(published_points())
    choose_look(made, PlotOptions())
    made.show_points(POINTS)
    in_front(made, qtbot, 1000, 640).plot.setFocus()
    qtbot.waitUntil(made.plot.hasFocus)
    return made


def place_of(panel: TradeoffPanel, key: str) -> QPoint:
    return panel.plot.drawn.place(panel.scene.index[key]).toPoint()


def click(panel: TradeoffPanel, key: str, modifier: Qt.KeyboardModifier = NO) -> None:
    QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, modifier, place_of(panel, key))


def drag(
    panel: TradeoffPanel, start: QPoint, end: QPoint, modifier: Qt.KeyboardModifier = NO, button: Qt.MouseButton = LEFT
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


def wheel(panel: TradeoffPanel, place: QPoint, notches: int) -> None:
    at, by = QPointF(place), QPoint(0, 120 * notches)
    nothing = Qt.MouseButton.NoButton, NO, Qt.ScrollPhase.NoScrollPhase, False
    QApplication.sendEvent(panel.plot, QWheelEvent(at, panel.plot.mapToGlobal(at), QPoint(), by, *nothing))


# --- Next to the plot ------------------------------------------------------------------------------------------------
def test_details_keep_the_sentence_and_have_figures_first_and_differences_folded(panel: TradeoffPanel) -> None:
    panel.choose("a")
    assert panel.details.sound == SOUNDS[0]
    panel.details.sentence.setCurrentIndex(1)
    panel.details.sentence.activated.emit(1)
    assert panel.details.sound == SOUNDS[1]
    panel.choose("b")
    assert panel.details.sound == SOUNDS[0] and panel.details.sentence.isHidden(), "it has no other"
    panel.choose("c")
    assert panel.details.sound == SOUNDS[1]
    details = panel.details
    panel.choose("a")
    assert details.text.startswith("<div style='margin-bottom:5px'><table")
    assert "<b>1.00</b>" in details.text and "0.900–1.10" in details.text and "n = 4" in details.text
    assert details.fold.text() == "Differences from its baseline" and details.difference.isHidden()
    details.fold.click()
    assert not details.difference.isHidden() and "DiTReducio: off → δ = 0.1" in details.difference.text()
    panel.choose("b")
    assert not details.difference.isHidden(), "it stays unfolded from point to point"
    panel.set_a(Reference("A", PLAIN, take="c"))
    assert "Against A:" in details.text
    panel.choose("c")
    assert "Against A" not in details.text, "A itself does not differ from A"
    panel.set_a(Reference("A", replace(PLAIN, model="lm-mini"), take="c"))
    panel.choose("a")
    assert details.fold.text() == "Differences from its baseline", "A is of another model"


# --- Axes, filters, what is shown ------------------------------------------------------------------------------------
def test_axes_are_chosen_with_their_direction_and_told_whole(panel: TradeoffPanel) -> None:
    across, up, whole = panel.options_line.x_choice, panel.options_line.y_choice, "Log-mel distance (nat. log) ↓"
    assert [across.itemText(row) for row in range(across.count())] == ["RTF ↓", whole]
    panel.resize(1200, 640)
    assert up.shown == whole
    panel.resize(panel.minimumSizeHint())
    assert up.shown.endswith("…") and whole.startswith(up.shown[:-1]) and up.toolTip().startswith(f"{whole}\n")
    chosen(across, "log_mel_distance")
    assert panel.options.x == "log_mel_distance" and "Mean absolute" in across.toolTip()
    panel.show_points(POINTS[:2])
    assert panel.options.x == "log_mel_distance", "what the user chose stays"


def test_it_opens_with_the_points_of_the_loaded_model(qtbot: QtBot) -> None:
    panel, other = on_screen(panel_of(), qtbot), point("e", 1.0, 1.0, model="LM mini")
    choose_look(panel, PlotOptions())
    panel.suit("LM mini")
    panel.show_points(())  # What is read first may have no takes.
    panel.show_points((*POINTS, other))
    assert [one.key for one in panel.scene.points] == ["e"]
    panel.suit("F5 mini")
    assert panel.scene.own == 4
    panel.set_filter(Filter())
    assert panel.scene.own == 5, "the user's choice stays"
    panel.suit("LM mini")
    panel.show_points((*POINTS, other, point("f", 2.0, 2.0, source="T")))
    assert panel.scene.own == 6, "what was just opened is shown"


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
    QTest.keyClicks(panel.filter_line.search, "bella")
    assert {one.key for one in panel.scene.points} == {"a", "c"}
    QTest.keyClicks(panel.filter_line.search, " nothing like it")
    said = "The filter hides all points; press Clear to show them."
    assert panel.scene.own == 0 and panel.foot.remarks.text() == said
    panel.clear_filter()
    chosen(panel.filter_line.combos["voice"], "anna")
    assert {one.key for one in panel.scene.points} == {"a", "b", "c"}
    panel.show_points(POINTS[3:])
    assert panel.filter.voice == "", "nobody speaks in that voice any more"


def test_what_is_chosen_stays_while_it_is_shown(panel: TradeoffPanel) -> None:
    panel.choose("d")
    panel.options_line.boxes["intervals"].click()
    assert current(panel) == "d" and not panel.options.intervals
    panel.options_line.boxes["dominated"].click()
    assert current(panel) == "" and "1 dominated not shown" in panel.foot.counts.text()


def test_published_results_are_switchable(panel: TradeoffPanel) -> None:
    panel.options_line.boxes["published"].click()
    assert panel.foot.remarks.text().startswith("No published results here: no paper reports Log-mel distance")
    own = point("e", 1.0, 1.0)
    figures = {**own.figures, "ops_ratio": own.figures["real_time_factor"]}
    panel.show_points([point("e", 1.0, 1.0, figures=figures, baseline=figures)])
    choose_look(panel, PlotOptions(x="real_time_factor", y="ops_ratio", ratios=True, published=True))
    ghosts = [one for one in panel.scene.points if one.published]
    assert ghosts and all(panel.options_line.boxes[one].isChecked() for one in ("ratios", "published"))
    click(panel, ghosts[3].key)
    assert "NVIDIA RTX 3090" in panel.details.text and panel.details.keep_button.isHidden()


def test_a_study_brings_its_speed_up_before_the_user_has_chosen(qtbot: QtBot) -> None:
    made = on_screen(panel_of(), qtbot)
    assert made.options.x == "real_time_factor" and made.invitation.startswith("Reading")
    made.show_points(())
    assert "of a study" in made.invitation
    made.show_points(many(3))
    assert made.options.x == made.options_line.x_choice.currentData() == "speed_up" and made.invitation == ""


# --- Between starts --------------------------------------------------------------------------------------------------
def test_what_is_shown_comes_back_with_the_points(panel: TradeoffPanel, qtbot: QtBot) -> None:
    options = PlotOptions("log_mel_distance", "real_time_factor", published=True, dominated=False, log_x=True)
    choose_look(panel, options)
    panel.set_filter(Filter(source="S", words="a", hidden=frozenset({"steps"})))
    kept = panel.remembered
    made = on_screen(panel_of(published_points()), qtbot)
    made.recall(kept)
    assert made.remembered == kept, "before there is any point"
    made.show_points((point("t", 1.0, 1.0, source="Takes"),))
    assert made.filter.source == "" and made.remembered == kept, "the study is not there yet"
    made.show_points(POINTS)
    assert made.options == panel.options and made.filter == panel.filter
    assert not made.legend.buttons["steps"].isChecked() and made.filter_line.search.text() == "a"
    assert made.options_line.boxes["log_x"].isChecked() and made.options_line.boxes["published"].isChecked()
    made.show_points(many(3))
    assert made.options.x == "log_mel_distance", "the axes are the user's"
    made.clear_filter()
    assert made.filter == Filter()


# --- Painted and written ----------------------------------------------------------------------------------------------
def test_both_themes_and_every_kind_of_point_are_painted(panel: TradeoffPanel) -> None:
    panel.plot.marks.set_letters({"a": "A", "c": "B", "d": "Setup"})
    panel.choose("b")
    light = panel.plot.grab().toImage()
    icons = {name: button.icon().cacheKey() for name, button in panel.legend.offered.items()}
    panel.show_points(POINTS)
    assert icons == {name: button.icon().cacheKey() for name, button in panel.legend.offered.items()}, "made once"
    panel.set_colours(DARK)
    dark = panel.plot.grab().toImage()
    assert light != dark and current(panel) == "b"
    assert dark.pixelColor(6, 6).lightness() < 60 < light.pixelColor(6, 6).lightness()


def test_files_stand_by_themselves(panel: TradeoffPanel, tmp_path: Path) -> None:
    QTest.keyClick(panel.plot, KEY.Key_C, CONTROL)
    copied = csv.DictReader(QApplication.clipboard().text().splitlines(), delimiter="\t")
    assert "".join(row["title"] + row["front"] for row in copied) == "a1b1d0c1"
    panel.set_filter(Filter(hidden=frozenset({"steps"})))
    for ending in ("svg", "png", "csv"):
        panel.write(tmp_path / f"out.{ending}")
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["title"], row["front"]) for row in rows] == [("a", "1"), ("c", "1")]
    assert (rows[0]["real_time_factor"], rows[0]["real_time_factor_low"]) == ("1.0", "0.9")
    assert rows[0]["real_time_factor_n"] == "4" and "ditreducio" in rows[0]["setting"]
    assert rows[0]["x: RTF"] == "1.0"
    texts = " ".join(text.strip() for text in ElementTree.parse(tmp_path / "out.svg").getroot().itertext())
    assert "Log-mel distance (nat. log) against RTF" in texts and "DiTReducio" in texts
    assert "without: Step pruning" in texts
    image = QImage(str(tmp_path / "out.png"))
    assert image.width() == 2200 and not image.isNull()
    with pytest.raises(PlainError, match="choose one of these endings"):
        panel.write(tmp_path / "out.pdf")


def test_what_a_judge_makes_of_the_reference_speech_is_drawn_and_written(panel: TradeoffPanel, tmp_path: Path) -> None:
    speed = {"real_time_factor": Estimate(1.0, 0.9, 1.1, 4, 2)}
    figures = [{**speed, "word_error_rate": Estimate(rate, rate, rate, 4, 2)} for rate in (0.1, 0.2)]
    floors = {"word_error_rate": Estimate(0.01, 0.0, 0.02, 10, 10)}
    with_floor, without = (
        [point(name, 1.0, 1.0, figures=own, floors=floor) for name, own in zip("ab", figures, strict=True)]
        for floor in (floors, {})
    )
    panel.show_points(without)
    choose_look(panel, PlotOptions(y="word_error_rate"))
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


def test_no_point_changes_its_glyph_as_others_arrive(panel: TradeoffPanel) -> None:
    steps = point("steps", 2.0, 1.0, techniques=("steps",))
    both = point("both", 1.0, 2.0, techniques=("first_block", "steps"))
    first = point("first", 1.5, 1.5, techniques=("first_block",))
    strange = point("strange", 1.2, 1.8, techniques=("not_installed",))
    arrivals = ([steps], [steps, both], [strange, first, both, steps], [*POINTS, first, strange, both, steps])
    seen: dict[str, set[Glyph]] = defaultdict(set)
    for points in arrivals:
        panel.show_points(points)
        for one, glyph in zip(panel.scene.points, panel.plot.drawn.shown.glyphs, strict=True):
            seen[one.key].add(glyph)
    assert {"steps", "both", "first", "strange"} <= set(seen)
    assert {key for key, glyphs in seen.items() if len(glyphs) > 1} == set()
    (of_both,), (of_first,), (of_steps,) = seen["both"], seen["first"], seen["steps"]
    assert of_both.shape == of_first.shape and of_both.colours == (*of_first.colours, *of_steps.colours)


def test_reports_and_the_window_agree(tmp_path: Path) -> None:
    """Of a study whose settings name step pruning first."""
    grid = {"steps": {"steps": ["off", 3]}, "first_block": {"threshold": ["off", 0.1]}}
    finished(tmp_path / "study", study(grid=grid))
    results = read(tmp_path / "study")
    report = scatter(results, "real_time_factor", "log_mel_distance")
    points = study_points(results, Scores(), {})
    assert {one.techniques for one in points} == {(), ("steps",), ("first_block",), ("first_block", "steps")}
    pool = Pool(points)
    drawn = described(scene(pool, Filter(), PlotOptions("real_time_factor", "log_mel_distance")), PointStyles(LIGHT))
    window = {one.colours: one.shape for one in drawn.glyphs}
    light, on_any = (*SERIES_LIGHT, *MORE_LIGHT), SERIES_ON_ANY
    names = {**dict(zip(light, HUES, strict=True)), **dict(zip(on_any, HUES, strict=True))}

    def hues(glyphs: Iterable[Glyph]) -> set[tuple[tuple[str, ...], str]]:
        return {(tuple(names.get(one, "") for one in glyph.colours), glyph.shape) for glyph in glyphs}

    assert hues(report.glyphs) == hues(drawn.glyphs) and len(window) == 4
    shapes = {words: glyph.shape for glyph, words in report.legend}
    assert shapes == {"No technique": "star", "First-block cache": "diamond", "Step pruning": "triangle"}


# --- Choosing --------------------------------------------------------------------------------------------------------
def test_keys_walk_along_the_front_hear_and_compare(panel: TradeoffPanel) -> None:
    heard, sides = QSignalSpy(panel.plot.activated), QSignalSpy(panel.plot.side_chosen)
    QTest.keyClick(panel.plot, KEY.Key_Return)
    assert heard.count() == 0, "no point is chosen yet"
    QTest.keyClick(panel.plot, KEY.Key_End)
    for key in (KEY.Key_Return, KEY.Key_Space, KEY.Key_A, KEY.Key_B):
        QTest.keyClick(panel.plot, key)
    assert heard.count() == 2 and current(panel) == "c" and [sides.at(0), sides.at(1)] == [["A"], ["B"]]
    panel.plot.go_to(None)
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


def test_clicks_choose_hear_and_add_and_hovering_tells_figures(panel: TradeoffPanel, qtbot: QtBot) -> None:
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
    QTest.mouseMove(panel.plot, place_of(panel, "b"))
    qtbot.waitUntil(lambda: "RTF: 2.00 (95 %: 1.90 to 2.10; n = 4)" in QToolTip.text())
    assert "<b>b</b>" in QToolTip.text() and "Log-mel distance (nat. log): 2.00 nat. log" in QToolTip.text()
    QTest.mouseMove(panel.plot, panel.plot.frame.area.topRight().toPoint() + QPoint(-8, 8))
    qtbot.waitUntil(lambda: panel.plot.hovered is None)


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


# --- Sections --------------------------------------------------------------------------------------------------------
def test_keys_and_the_wheel_zoom_around_the_point_and_move_the_section(panel: TradeoffPanel) -> None:
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
    before = place_of(panel, "a")  # The wheel zooms both axes, or the one that it is on.
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
    assert "1 point not shown: Log-mel distance is 0" in panel.foot.remarks.text()
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
