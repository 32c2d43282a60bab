"""The trade-off panel next to its plot: figures of points, axes, filters, what comes back after a restart, and what is
painted and written to files."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.figures.glyphs import HUES, MORE_LIGHT, SERIES_LIGHT, SERIES_ON_ANY, Glyph
from paretone.measure.estimates import Estimate
from paretone.studies.report import _scatter
from paretone.studies.results import read
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import BASELINE, Filter, PlotOptions, Pool, scene
from paretone_app.features.tradeoff.styles import PointStyles, described
from paretone_app.features.tradeoff.words import Reference
from paretone_app.results.points import Scores, published_points, study_points
from paretone_app.shell.colours import DARK, LIGHT
from tests.app.features.tradeoff.test_scene import PLAIN, point
from tests.app.features.tradeoff.using import CONTROL, KEY, POINTS, SOUNDS, choose_look, click, current, panel_of
from tests.engine.studies.small import finished, study
from tests.tools.many_points import many


# --- Next to the plot ------------------------------------------------------------------------------------------------
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


def test_figures_come_first_and_differences_to_the_baseline_or_to_a_are_folded(panel: TradeoffPanel) -> None:
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
    across.setCurrentIndex(1)
    across.activated.emit(1)
    assert panel.options.x == "log_mel_distance" and "Mean absolute" in across.toolTip()
    panel.show_points(POINTS[:2])
    assert panel.options.x == "log_mel_distance", "what the user chose stays"


def test_it_opens_with_the_points_of_the_loaded_model(qtbot: QtBot) -> None:
    panel, other = panel_of(), point("e", 1.0, 1.0, model="LM mini")
    qtbot.addWidget(panel)
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
    voice = panel.filter_line.combos["voice"]
    voice.setCurrentIndex(voice.findData("anna"))
    voice.activated.emit(voice.currentIndex())
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
    assert (
        ghosts and panel.options_line.boxes["ratios"].isChecked() and panel.options_line.boxes["published"].isChecked()
    )
    click(panel, ghosts[3].key)
    assert "NVIDIA RTX 3090" in panel.details.text and panel.details.keep_button.isHidden()


def test_a_study_brings_its_speed_up_before_the_user_has_chosen(qtbot: QtBot) -> None:
    made = panel_of()
    qtbot.addWidget(made)
    assert made.options.x == "real_time_factor" and made.invitation.startswith("Reading")
    made.show_points(())
    assert "run a study" in made.invitation
    made.show_points(many(3))
    assert made.options.x == made.options_line.x_choice.currentData() == "speed_up" and made.invitation == ""


# --- Between starts --------------------------------------------------------------------------------------------------
def test_what_is_shown_comes_back_with_the_points(panel: TradeoffPanel, qtbot: QtBot) -> None:
    choose_look(
        panel, PlotOptions(x="log_mel_distance", y="real_time_factor", published=True, dominated=False, log_x=True)
    )
    panel.set_filter(Filter(source="S", words="a", hidden=frozenset({"steps"})))
    kept = panel.remembered
    made = panel_of(published_points())
    qtbot.addWidget(made)
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
    root = ElementTree.parse(tmp_path / "out.svg").getroot()
    texts = " ".join(text.strip() for text in root.itertext())
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
    shapes = {words: glyph.shape for glyph, words in report.legend}
    assert shapes == {"No technique": "star", "First-block cache": "diamond", "Step pruning": "triangle"}
