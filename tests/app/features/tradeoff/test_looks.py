"""The trade-off panel as it is painted and written to files."""

from __future__ import annotations

import csv
import itertools
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import createdByPython

from paretone.errors import PlainError
from paretone.figures.glyphs import HUES, MORE_LIGHT, SERIES_LIGHT, SERIES_ON_ANY, Glyph
from paretone.measure.estimates import Estimate
from paretone.studies.report import _scatter
from paretone.studies.results import read
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import Filter, PlotOptions, Pool, scene
from paretone_app.features.tradeoff.styles import PointStyles, described
from paretone_app.results.points import Scores, study_points
from paretone_app.shell.colours import DARK, LIGHT
from tests.app.features.tradeoff.test_scene import point
from tests.app.features.tradeoff.using import CONTROL, KEY, POINTS, choose_look, current, drag, place_of
from tests.engine.studies.small import finished, study
from tests.tools.many_points import many


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
    assert panel.scene.own == 2000 and panel.foot.counts.startswith("2,000 points")
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


def test_the_export_menu_has_each_kind_of_file(panel: TradeoffPanel) -> None:
    actions = panel.export_button.menu().actions()
    assert actions == list(panel.can.save)
    assert all(createdByPython(one) for one in actions), "Qt's own would lose their wrappers"
    for action in panel.can.save:
        assert panel.export_button.isEnabled()
        action.set_reason("There are no points.")
    assert not panel.export_button.isEnabled() and panel.export_button.toolTip() == "There are no points."


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
    own = ["hear", "set_a", "set_b", "keep", "use", "everything"]
    assert titles == [*own, "Copy as table", "Show as table"]


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
    report = _scatter(results, "real_time_factor", "log_mel_distance")
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
    assert {words: glyph.shape for glyph, words in report.legend} == {
        "No technique": "star",
        "First-block cache": "diamond",
        "Step pruning": "triangle",
    }


def test_icons_of_the_legend_are_made_once_for_each_look(panel: TradeoffPanel) -> None:
    def icons() -> dict[str, int]:
        return {name: button.icon().cacheKey() for name, button in panel.legend.offered.items()}

    panel.show_points(many(20))
    before = icons()
    panel.show_points(many(20))
    assert icons() == before
    panel.set_colours(DARK)
    assert set(icons().values()).isdisjoint(before.values())
