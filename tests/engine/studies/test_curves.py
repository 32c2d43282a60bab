"""Curves over knobs, found in results and drawn in the report."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from paretone.figures.curves import WIDTH, Curve, Curves, Level, draw
from paretone.figures.glyphs import Glyph
from paretone.figures.scatter import Dimension
from paretone.measure.estimates import Estimate
from paretone.models import catalogue
from paretone.setting.knobs import defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.curves import curves, curves_page, curves_sheet
from paretone.studies.results import Results, SettingResult
from paretone.techniques import technique

SVG = "{http://www.w3.org/2000/svg}"
PLAIN = Setting("f5-mini", catalogue.entry("f5-mini").options_with())


def used(setting: Setting, name: str, **knobs: object) -> Setting:
    return setting.with_technique(UsedTechnique(name, defaults(technique(name).knobs).replace(**knobs)))


def figure(value: float) -> Estimate:
    return Estimate(value, value - 0.1, value + 0.1, 6, 3)


def results(*settings: Setting, finished: int = 6, **more: object) -> Results:
    """Settings whose naturalness is their number, and whose other figures are the same."""
    found, same = [], {"pitch_range": figure(0.2), "real_time_factor": figure(0.5)}
    for number, one in enumerate(settings):
        figures = {"naturalness": figure(number), **same}
        found.append(SettingResult(f"key{number}", "", "grid", one, "key0", figures, finished=finished))
    return Results(Path("nowhere"), "Curves", "f5-mini", "0" * 12, "2001-01-01", "", {}, tuple(found), **more)


def test_settings_that_differ_in_one_knob_are_a_curve_in_the_order_of_its_values() -> None:
    some = [used(PLAIN, "steps", steps=steps) for steps in (7, 2, 4)]
    (found,) = curves(results(PLAIN, *some))
    assert (found.technique, found.knob.name, found.title, found.names) == ("steps", "steps", "Step pruning: steps", ())
    (curve,) = found.curves
    assert [value for value, _ in curve.points] == [2, 4, 7] and curve.title == ""
    assert [one.key for _, one in curve.points] == ["key2", "key3", "key1"]
    assert curve.without is not None and curve.without.key == "key0"
    # Two points and none without are no curve, and neither are settings that nothing has been spoken with.
    assert curves(results(*some[:2])) == () and curves(results(PLAIN, *some, finished=0)) == ()


def test_options_of_the_model_have_curves_too_and_seeds_and_artefacts_make_no_difference() -> None:
    some = [replace(PLAIN, options=PLAIN.options.replace(guidance=guidance), seed=3) for guidance in (0.0, 1.0, 2.0)]
    (found,) = curves(results(*some))
    assert (found.technique, found.knob.name) == ("", "guidance")
    assert [value for value, _ in found.curves[0].points] == [0.0, 1.0, 2.0] and found.curves[0].without is None


def test_two_techniques_make_a_curve_for_each_way_the_other_is_set() -> None:
    grid = [used(PLAIN, "steps", steps=steps) for steps in (3, 5, 7)]
    grid += [used(one, "guidance_interval", steps=2) for one in grid[1:]]
    (found,) = curves(results(PLAIN, *grid))
    assert [one.title for one in found.curves] == [""], "two points without a third are no curve"
    grid.append(used(grid[0], "guidance_interval", steps=2))
    (found,) = curves(results(PLAIN, *grid))
    assert [one.title for one in found.curves] == ["no other technique", "Guidance on the first k steps k = 2"]
    assert [len(one.points) for one in found.curves] == [3, 3]


def test_knobs_of_names_have_places_and_other_knobs_of_the_technique_are_named() -> None:
    (found,) = curves(results(PLAIN, *[used(PLAIN, "precision", precision=name) for name in ("int8", "bfloat16")]))
    assert found.names == ("bfloat16", "int8") and found.place("int8") == 1.0
    grid = []
    for threshold in (0.1, 0.2, 0.3):
        grid += [used(PLAIN, "ditreducio", threshold=threshold, temporal=one) for one in ("reuse", "forecast")]
    by_knob = {one.knob.name: one for one in curves(results(PLAIN, *grid))}
    titles = [one.title for one in by_knob["threshold"].curves]
    assert len(set(titles)) == 2 and any("forecast" in title for title in titles), titles


def test_the_report_draws_each_figure_that_changes_with_its_floor_and_what_it_is_without() -> None:
    some = [used(PLAIN, "steps", steps=steps) for steps in (1, 4, 16)]
    page = "\n".join(curves_page(results(PLAIN, *some, references={"naturalness": figure(4.6)})))
    assert "Figures over each knob" in page and "Step pruning: steps" in page and "Dashed" in page
    drawn = ["<svg" + part.partition("</svg>")[0] + "</svg>" for part in page.split("<svg")[1:]]
    root, flat = map(ElementTree.fromstring, drawn)
    assert root.get("aria-label") == "Naturalness (MOS) over Steps"
    assert flat.get("aria-label") == "Pitch range (nat. log) over Steps", "no difference to the judge, and no speed"
    titles = [one.text or "" for one in root.iter(f"{SVG}title")]
    assert "Reference speech: 4.60" in titles and "Without the technique: 0" in titles
    assert "Step pruning 4: Naturalness 2.00 (1.90–2.10)" in titles
    assert {"1", "4", "16", "Naturalness (MOS)"} <= {one.text for one in root.iter(f"{SVG}text")}
    assert curves_page(results(PLAIN)) == []


def test_all_curves_are_one_picture_with_a_row_for_each_knob() -> None:
    steps = [used(PLAIN, "steps", steps=steps) for steps in (1, 4, 16)]
    guided = [used(one, "guidance_interval", steps=2) for one in steps]
    plain = [replace(PLAIN, options=PLAIN.options.replace(guidance=value)) for value in (0.0, 1.0, 2.0)]
    root = ElementTree.fromstring(curves_sheet(results(*steps, *guided, *plain)))
    texts = [one.text or "" for one in root.iter(f"{SVG}text")]
    assert [text for text in texts if text.startswith("■")], "curves that differ in another technique are named"
    moved = [one.get("transform") for one in root.iter(f"{SVG}g") if one.get("transform")]
    assert len({one.split()[1] for one in moved}) == 2, "a row for the steps and one for guidance"
    width = float(root.get("width", 0))
    assert width == 2 * WIDTH and root.get("color") == "#222222", "a column for each figure that was judged"
    assert curves_sheet(results(PLAIN)) == ""


def test_wide_ranges_are_logarithmic_and_nothing_is_drawn_of_nothing() -> None:
    nothing = Curves(Dimension("x"), Dimension("y"), levels=(Level(1.0, "floor"),))
    assert draw(nothing) == ""
    values = np.array([[value, value, value] for value in (1.0, 2.0, 3.0)])
    curve = Curve(Glyph(("red",), "circle"), np.array([1.0, 4.0, 16.0]), values, ("", "", ""))
    root = ElementTree.fromstring(draw(replace(nothing, curves=(curve,))))
    bottom = max(float(one.get("y", 0)) for one in root.iter(f"{SVG}text") if one.text == "16")
    ticks = [float(one.get("x", 0)) for one in root.iter(f"{SVG}text") if float(one.get("y", 0)) == bottom]
    assert ticks[1] - ticks[0] == pytest.approx(ticks[2] - ticks[1], abs=0.2)
