"""The trade-off panel as it is painted and written to files."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

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
from tests.app.features.tradeoff.using import CONTROL, KEY, POINTS, choose_look, current
from tests.engine.studies.small import finished, study


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
