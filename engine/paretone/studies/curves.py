"""Curves in a study's results: settings that differ in one knob, ordered by its value. Torch-free.

They show a knob's effect on every figure, from no effect to broken speech. Sources of curves: a grid of one knob, each
line of a grid of several, and listed settings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paretone.figures.curves import Curve, Curves, Level, draw, sheet
from paretone.figures.glyphs import SERIES_ON_ANY, Glyphs, marks_in_turn
from paretone.figures.scatter import Dimension
from paretone.figures.svg import escape
from paretone.measure.metrics import JUDGED, Metric, metric
from paretone.models import catalogue
from paretone.setting.knobs import NO_VALUES, Choice, Knob, Values
from paretone.setting.setting import Setting
from paretone.studies.results import Results, SettingResult
from paretone.studies.study import SERVER
from paretone.studies.wording import REFERENCE, described, figure_text, option_words, setting_title, short_title
from paretone.techniques import find
from paretone.wording import plain

SHORTEST = 3
"""Minimum points of a curve, including the setting without the technique."""
_Value = bool | int | float | str


@dataclass(frozen=True)
class KnobCurve:
    """Settings that differ in one knob only."""

    title: str
    """Their other settings, if other curves of the knob differ in them."""
    points: tuple[tuple[_Value, SettingResult], ...]
    """Values of the knob, in order, with their settings."""
    without: SettingResult | None = None


@dataclass(frozen=True)
class KnobCurves:
    technique: str
    """Name of the technique, or ``""`` for an option of the model."""
    knob: Knob
    curves: tuple[KnobCurve, ...]
    """Longest first."""

    @property
    def title(self) -> str:
        return f"{short_title(self.technique)}: {self.knob.title.lower()}" if self.technique else self.knob.title

    @property
    def names(self) -> tuple[str, ...]:
        """The knob's values as words, in order; empty for numbers."""
        found = {value for one in self.curves for value, _ in one.points}
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
            return ()
        return tuple(plain(value) for value in sorted(found, key=lambda value: _rank(self.knob, value)))

    def place(self, value: _Value) -> float:
        """Position of a value on the axis: itself if numeric, otherwise its index in :attr:`names`."""
        return float(self.names.index(plain(value))) if self.names else float(value)


def curves(results: Results) -> tuple[KnobCurves, ...]:
    """All curves in ``results``: the model's options first, then techniques in order of occurrence."""
    there = {one.setting.bare: one for one in results.settings if one.finished and one.origin != SERVER}
    groups: dict[tuple[str, str], dict[Setting, list[tuple[_Value, SettingResult]]]] = defaultdict(dict)
    for setting, one in there.items():
        for owner, name, value, rest in _varied(setting):
            groups[owner, name].setdefault(rest, []).append((value, one))
    found = []
    for (owner, name), lines in sorted(groups.items(), key=lambda one: bool(one[0][0])):
        model, declared = catalogue.find(results.model), find(owner)
        knobs = declared.knobs if declared else model.options if model and not owner else ()
        knob = next((one for one in knobs if one.name == name), None)
        if knob is None:  # This version has no such knob.
            continue
        without = {rest: there.get(rest.without(owner)) if owner else None for rest in lines}
        kept = {
            rest: sorted(points, key=lambda point: _rank(knob, point[0]))
            for rest, points in lines.items()
            if len(points) > 1 and len(points) + (without[rest] is not None) >= SHORTEST
        }
        if kept:
            titles = _titles(list(kept), owner)
            made = [
                KnobCurve(title, tuple(points), without[rest])
                for title, (rest, points) in zip(titles, kept.items(), strict=True)
            ]
            found.append(KnobCurves(owner, knob, tuple(sorted(made, key=lambda one: -len(one.points)))))
    return tuple(found)


def without_knob(setting: Setting, owner: str, name: str) -> Setting:
    """``setting`` without the value of one knob of ``owner`` or option: equal for settings that differ only there."""
    if not owner:
        return replace(setting, options=_without(setting.options, name))
    used = setting.technique(owner)
    return setting if used is None else setting.with_technique(replace(used, knobs=_without(used.knobs, name)))


def _varied(setting: Setting) -> Iterator[tuple[str, str, _Value, Setting]]:
    """Each option and knob of ``setting``: technique, name, value, and the setting without it."""
    owners = [("", setting.options), *((one.technique, one.knobs) for one in setting.techniques)]
    for owner, values in owners:
        for name, value in values.items():
            yield owner, name, value, without_knob(setting, owner, name)


def _without(values: Values, name: str) -> Values:
    return Values({each: value for each, value in values.items() if each != name})


def _rank(knob: Knob, value: _Value) -> tuple[float, str]:
    if isinstance(knob, Choice) and value in knob.values:
        return knob.values.index(str(value)), ""
    return (0.0, value) if isinstance(value, str) else (float(value), "")


def _titles(rests: Sequence[Setting], owner: str) -> list[str]:
    """Titles of ``rests``: their other techniques and their differences; ``""`` for a single one without techniques."""
    names = {name for one in rests for name in one.options}
    differing = {name for name in names if len({one.options.get(name) for one in rests}) > 1}
    owned = [one.technique(owner) for one in rests]
    titles = []
    for one, used in zip(rests, owned, strict=True):
        others = replace(one.without(owner), options=NO_VALUES)
        parts = [described(others)] if others.techniques else []
        parts += [option_words(one, name) for name in sorted(differing & set(one.options))]
        if used is not None:
            varied = {name for name in used.knobs if len({other.knobs.get(name) for other in owned if other}) > 1}
            parts += [option_words(one, name, owner) for name in sorted(varied)]
        titles.append(", ".join(parts) or ("no other technique" if len(rests) > 1 else ""))
    return titles


# --- In a report ------------------------------------------------------------------------------------------------------
FIGURES = ("real_time_factor", "speed_up", "first_audio_seconds", *(one.name for one in JUDGED), "log_mel_distance")
IN_SHEET = tuple(one.name for one in JUDGED)
"""Figures in the picture of all knobs: without speed, which depends on the machine."""
MOST = 6
"""Maximum number of curves per plot."""


def curves_page(results: Results) -> list[str]:
    """Section of a report as HTML; empty if no settings differ in one knob only."""
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
    """All curves in one SVG picture, a row per knob and a column per figure; ``""`` if there are none."""
    rows = []
    for of in curves(results):
        glyphs = _glyphs(of)
        titles = [(_colour(glyphs, number), one.title) for number, one in enumerate(of.curves[:MOST]) if one.title]
        rows.append((of.title, titles, [_plot(of, metric(name), glyphs, results) for name in IN_SHEET]))
    columns = [at for at in range(len(IN_SHEET)) if any(plots[at].curves for _, _, plots in rows)]
    drawn = [(title, named, [plots[at] for at in columns]) for title, named, plots in rows]
    drawn = [row for row in drawn if any(one.curves for one in row[2])]
    return sheet(drawn) if drawn else ""


def _over(of: KnobCurves, results: Results) -> list[str]:
    shown = of.curves[:MOST]
    glyphs = _glyphs(of)
    plots = [draw(_plot(of, metric(name), glyphs, results)) for name in FIGURES]
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
    """Curves of one figure with at least two points, and their levels."""
    drawn, levels = [], []
    for number, curve in enumerate(of.curves[:MOST]):
        points = [(value, setting) for value, setting in curve.points if one.name in setting.figures]
        if len(points) < 2:
            continue
        glyph = glyphs.glyph((str(number),))
        places = np.array([of.place(value) for value, _ in points])
        values = np.array([setting.figures[one.name].ends for _, setting in points])
        drawn.append(Curve(glyph, places, values, tuple(_tip(one, setting) for _, setting in points)))
        without = None if curve.without is None else curve.without.figures.get(one.name)
        if without is not None:
            levels.append(Level(without.value, "Without the technique", glyph.colours[0], dashed=False))
    floor = results.references.get(one.name)
    if floor is not None:
        levels.append(Level(floor.value, REFERENCE))
    # No difference found by a judge is a result; other constant figures are left out.
    if not one.judge and len({value for curve in drawn for value in curve.values[:, 0]}) < 2:
        return Curves(Dimension(of.knob.label), Dimension.of(one))
    return Curves(Dimension(of.knob.label), Dimension.of(one), tuple(drawn), tuple(levels), of.names)


def _tip(one: Metric, setting: SettingResult) -> str:
    figure = setting.figures[one.name]
    return f"{setting_title(setting)}: {one.title} {figure_text(one, figure)}"
