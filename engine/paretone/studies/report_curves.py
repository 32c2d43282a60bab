"""The part of a report that shows every figure over each knob: what speed costs, and what it does not. Torch-free."""

from __future__ import annotations

import numpy as np

from paretone.figures import curves_svg
from paretone.figures.curves import Curve, Curves, Level
from paretone.figures.glyphs import SERIES_ON_ANY, Glyphs, marks_in_turn
from paretone.figures.scatter import Dimension
from paretone.figures.svg_parts import escape
from paretone.measure.estimates import Estimate
from paretone.measure.metrics import JUDGED, Metric, metric
from paretone.studies.curves import KnobCurve, KnobCurves, curves
from paretone.studies.results import Results, SettingResult
from paretone.studies.wording import REFERENCE, setting_title

FIGURES = ("real_time_factor", "speed_up", "first_audio_seconds", *(one.name for one in JUDGED), "log_mel_distance")
"""Those that are drawn over each knob, as far as they were measured."""
IN_SHEET = tuple(one.name for one in JUDGED)
"""Those of the picture of all knobs: speed is left out, because it is that of one machine."""
MOST = 6
"""Most curves in one plot."""


def curves_page(results: Results) -> list[str]:
    """The section of a report, as HTML; nothing if no settings differ in one knob only."""
    found = curves(results)
    if not found:
        return []
    parts = ["<h2>Figures over each knob</h2>"]
    parts += [part for one in found for part in _over(one, results)]
    floor = " Dashed: the same judge's score of the reference speech." if results.references else ""
    note = (
        f"Vertical lines: 95 % intervals.{floor} Dotted, in a curve's colour: the same setting without the technique. "
        "Predicted naturalness does not fall when speech turns flat; pitch range and diversity do."
    )
    return [*parts, f"<p><small>{escape(note)}</small></p>"]


def curves_sheet(results: Results) -> str:
    """All of them in one SVG picture, a row for each knob and a column for each figure; ``""`` if there are none."""
    rows = []
    for of in curves(results):
        glyphs = _glyphs(of)
        titles = [(_colour(glyphs, number), one.title) for number, one in enumerate(of.curves[:MOST]) if one.title]
        rows.append((of.title, titles, [_plot(of, metric(name), glyphs, results) for name in IN_SHEET]))
    columns = [at for at in range(len(IN_SHEET)) if any(plots[at].curves for _, _, plots in rows)]
    drawn = [(title, named, [plots[at] for at in columns]) for title, named, plots in rows]
    drawn = [row for row in drawn if any(one.curves for one in row[2])]
    return curves_svg.sheet(drawn) if drawn else ""


def _over(of: KnobCurves, results: Results) -> list[str]:
    shown = of.curves[:MOST]
    glyphs = _glyphs(of)
    plots = [curves_svg.draw(_plot(of, metric(name), glyphs, results)) for name in FIGURES]
    if not any(plots):
        return []
    parts = [f"<h3>{escape(of.title)}</h3>", f"<p><small>{escape(of.knob.meaning)}</small></p>"]
    if any(one.title for one in shown):
        entries = (
            f'<span style="color:{_colour(glyphs, number)}">■</span> {escape(one.title)}'
            for number, one in enumerate(shown)
        )
        parts.append(f"<p>{' &emsp; '.join(entries)}</p>")
    if len(of.curves) > MOST:
        parts.append(f"<p><small>The longest {MOST} of {len(of.curves)} curves.</small></p>")
    return [*parts, '<div class="small">', *filter(None, plots), "</div>"]


def _glyphs(of: KnobCurves) -> Glyphs:
    names = [str(number) for number in range(len(of.curves[:MOST]))]
    return Glyphs(marks_in_turn(names), SERIES_ON_ANY, "currentColor")


def _colour(glyphs: Glyphs, number: int) -> str:
    return glyphs.glyph((str(number),)).colours[0]


def _plot(of: KnobCurves, one: Metric, glyphs: Glyphs, results: Results) -> Curves:
    """The curves of one figure that have at least two points, and their levels."""
    drawn, levels = [], []
    for number, curve in enumerate(of.curves[:MOST]):
        points = [(value, setting) for value, setting in curve.points if one.name in setting.figures]
        if len(points) < 2:
            continue
        glyph = glyphs.glyph((str(number),))
        places = np.array([of.place(value) for value, _ in points])
        values = np.array([_ends(setting.figures[one.name]) for _, setting in points])
        drawn.append(Curve(glyph, places, values, tuple(_tip(one, setting) for _, setting in points)))
        levels += _without(curve, one, glyph.colours[0])
    floor = results.references.get(one.name)
    if floor is not None:
        levels.append(Level(floor.value, REFERENCE))
    # That a judge finds no difference is a finding; of all else that is the same everywhere, nothing is said.
    if not one.judge and len({value for curve in drawn for value in curve.values[:, 0]}) < 2:
        return Curves(Dimension(of.knob.label), Dimension(one.label))
    return Curves(
        Dimension(of.knob.label), Dimension(one.label, one.title, one.better), tuple(drawn), tuple(levels), of.names
    )


def _without(curve: KnobCurve, one: Metric, colour: str) -> list[Level]:
    found = None if curve.without is None else curve.without.figures.get(one.name)
    return [] if found is None else [Level(found.value, "Without the technique", colour, dashed=False)]


def _ends(figure: Estimate) -> tuple[float, float, float]:
    return figure.value, figure.low, figure.high


def _tip(one: Metric, setting: SettingResult) -> str:
    figure = setting.figures[one.name]
    interval = f" ({figure.low:.4g} to {figure.high:.4g})" if figure.spreads else ""
    return f"{setting_title(setting)}: {one.title} {figure.value:.4g}{interval}"
