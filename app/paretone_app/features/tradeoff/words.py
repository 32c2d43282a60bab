"""Texts and tables of the trade-off view and its points. No Qt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from itertools import chain
from pathlib import Path

from paretone.measure.estimates import Estimate
from paretone.measure.processor_time import busy_line
from paretone.models.voices import shown_name
from paretone.setting.setting import Setting
from paretone.wording import comma_separated
from paretone_app.features.tradeoff.axes import ARROWS, AXES, figure_text, said
from paretone_app.features.tradeoff.scene import PlotOptions, Scene
from paretone_app.numbers import counted, localised
from paretone_app.results.points import STUDY, TAKE, Point
from paretone_app.shell.colours import Colours
from paretone_app.state.differences import difference_words, setting_differences

_FLOOR = "&nbsp;&nbsp;of the reference speech"
_FIRST = ("real_time_factor", "speed_up", "log_mel_distance", "word_error_rate", "naturalness", "voice_similarity")
"""Figures of speed and quality, listed first."""
_LONGEST = 28
"""Longest value in a difference, in letters."""


@dataclass(frozen=True)
class Reference:
    title: str
    """Within a sentence: ``A``, ``its baseline``."""
    setting: Setting
    text: str = ""
    voice: str = ""


def origin(point: Point) -> str:
    if point.published:
        return f"Published: {point.source}"
    if point.kind == TAKE:
        sound = point.sounds[0]
        label = f"{point.remarks[0]}; " if point.remarks else ""
        return f"{label}a take of {point.model}: “{sound.text}”, {shown_name(sound.voice)}, seed {sound.seed}"
    takes = counted(point.finished, "finished take", "finished takes")
    sentences = len({one.text for one in point.sounds})
    return f"{point.source}: {takes} of {counted(sentences, 'sentence', 'sentences')}, {point.model}"


def doubt(point: Point) -> str:
    """Why its times are doubtful, as a sentence, or ``""``."""
    if not point.busy:
        return ""
    several = f"{point.busy} of {counted(point.finished, 'take', 'takes')}"
    return localised(busy_line(during="" if point.kind == TAKE else several))


def on_axes(point: Point, options: PlotOptions) -> list[str]:
    """Its figures on both axes, one line each."""
    found = []
    for one in options.axes:
        figure = one.figure(point, options.ratios)
        if figure is not None:
            floor = one.floor(point, options.ratios)
            reference = "" if floor is None else f", of the reference speech {said(floor.value, one.unit)}"
            found.append(f"{one.label(options.ratios)}: {figure_text(one, figure, options.ratios)}{reference}")
    return found


def plain(point: Point, shown: Scene) -> str:
    """A point in one or two sentences, for screen readers."""
    place = shown.index.get(point.key)
    where = ", on the front" if place in shown.front else ", a ghost" if place in shown.ghosts else ""
    said = "; ".join([f"{point.title}{where}", *on_axes(point, shown.options), origin(point)]) + "."
    return f"{said} {doubt(point)}".rstrip()


def tip(point: Point, shown: Scene) -> str:
    place = shown.index.get(point.key)
    lines = [f"<b>{escape(point.title)}</b>", *map(escape, on_axes(point, shown.options))]
    if place in shown.front:
        lines.append("On the front: no other shown point is better on one axis and at least as good on the other.")
    if place in shown.ghosts:
        lines.append("A ghost, for comparison.")
    lines.append(escape(origin(point)))
    lines += map(escape, filter(None, (doubt(point),)))
    lines += map(escape, point.remarks if point.kind != TAKE else ())
    lines += map(escape, point.machines)
    # Otherwise an unbroken line makes it as wide as the screen.
    return f'<div style="width: 26em">{"<br>".join(lines)}</div>'


def figures_html(point: Point, options: PlotOptions, colours: Colours) -> str:
    """All figures of a point as a table: those of the axes, then speed and quality, then the rest."""
    first = [
        one for one in dict.fromkeys(options.axes) if not one.knob and one.figure(point, options.ratios) is not None
    ]
    shown = [(one, options.ratios, colours.text) for one in first]
    if not point.published:
        others = [one for one in AXES if one.name in point.figures and one not in first]
        others.sort(key=lambda one: one.name not in _FIRST)
        shown += [(one, False, colours.text if one.name in _FIRST else colours.muted) for one in others]
    lines: list[tuple[str, Estimate, str]] = []
    for one, ratios, colour in shown:
        figure, floor = one.figure(point, ratios), one.floor(point, ratios)
        if figure is not None:
            arrow = ARROWS.get(one.better, "").replace(" ", "&nbsp;")
            lines.append((f"{escape(one.label(ratios))}{arrow}", figure, colour))
        if floor is not None:
            lines.append((_FLOOR, floor, colours.muted))
    numbers = {figure.n for _, figure, _ in lines}
    alike = len(numbers) == 1
    rows = [_row(*line, not alike) for line in lines]
    spread = any(figure.spreads for _, figure, _ in lines)
    head = ("95 %" if spread else "") + (f" (n = {max(numbers)})" if alike and max(numbers) > 1 else "")
    cells = (head,) if alike else (head, "n")
    titles = "".join(f"<td style='color:{colours.muted}'><small>{one}</small></td>" for one in cells)
    return f"<table cellspacing='0' cellpadding='2'><tr><td></td><td></td>{titles}</tr>{''.join(rows)}</table>"


def _row(name: str, figure: Estimate, colour: str, count: bool) -> str:
    """Name, value, interval and optionally the number of takes."""
    low, high = said(figure.low), said(figure.high)
    spread = "" if low == high else f"<small>{low}–{high}</small>"
    cells = [name, f"<b>{said(figure.value)}</b>", spread]
    if count:
        cells.append(f"<small>{figure.n or ''}</small>")
    return "".join(["<tr>", *(f"<td style='color:{colour}'>{cell}</td>" for cell in cells), "</tr>"])


def reference_of(point: Point) -> Reference | None:
    """The baseline of a point's setting, if the point uses techniques."""
    if point.setting is None or not point.techniques:
        return None
    return Reference("its baseline", point.setting.baseline)


def difference_html(point: Point, other: Reference, colours: Colours) -> str:
    """Differences of a point's setting from ``other``, as rich text."""
    if point.setting is None:
        return ""
    left, right = other.setting, point.setting
    if point.kind == STUDY:
        # Study settings cover seeds and voices and have their own strategy tables.
        left, right = left.bare, right.bare
    found = []
    if point.kind == TAKE and other.text:
        sound = point.sounds[0]
        pairs = (("Text", other.text, sound.text), ("Voice", shown_name(other.voice), shown_name(sound.voice)))
        found += [_change(what, one, two, colours.warning) for what, one, two in pairs if one != two]
    for one in setting_differences(left, right):
        colour = colours.text if one.technique else colours.warning
        found.append(_change(*difference_words(one), colour))
    head = f"<b>Against {escape(other.title)}:</b> "
    return head + ("".join(f"<br>{one}" for one in found) or "the same setting.")


def comparable(point: Point, other: Reference) -> bool:
    """Whether the differences from ``other`` explain the point's figures: same model and, for single takes, same
    text."""
    if point.setting is None or point.setting.model != other.setting.model:
        return False
    return point.kind != TAKE or not other.text or point.sounds[0].text == other.text


def _change(what: str, left: str, right: str, colour: str) -> str:
    values = [escape(one if len(one) <= _LONGEST else f"{one[: _LONGEST - 2]}…") for one in (left, right)]
    return f'<span style="color:{colour}">{escape(what)}: {values[0]} → {values[1]}</span>'


def counts(shown: Scene) -> str:
    published = len(shown.points) - shown.own - len(shown.ghosts)
    parts = [counted(shown.own, "point", "points")]
    if shown.walk:
        places = f" at {counted(shown.places_on_front, 'place', 'places')}"
        parts.append(f"{len(shown.walk)} on the front{places if shown.places_on_front < len(shown.walk) else ''}")
    if shown.dominated:
        parts.append(f"{shown.dominated} dominated not shown")
    if published:
        parts.append(f"{published} published")
    if shown.ghosts:
        parts.append(counted(len(shown.ghosts), "ghost", "ghosts"))
    if shown.filtered:
        parts.append(f"{shown.filtered} filtered out")
    return " · ".join(parts)


def playing_words(played: int, whole: int) -> str:
    """Sentence: ``played`` of the ``whole`` points on the front are heard in turn."""
    if played < whole:
        which = f"{played} of the {whole} points on the front, those of one study,"
        return f"Playing {which} in turn; walk to stay with one."
    return f"Playing the front: {played} settings in turn; walk to stay with one."


def remarks(shown: Scene) -> tuple[str, ...]:
    """Cautions, and why points are not shown, as sentences."""
    total = sum(count for _, count in shown.missing)
    found = list(shown.notes)
    if total:
        reasons = "; ".join(
            f"{reason} ({count})" if len(shown.missing) > 1 else reason for reason, count in shown.missing
        )
        found.append(f"{counted(total, 'point', 'points')} not shown: {reasons}.")
    return tuple(found)


Measured = Mapping[tuple[Path | None, Setting], Point]
"""Points of studies, by folder and setting."""


# --- Explanation of a point on the front ------------------------------------------------------------------------------
@dataclass(frozen=True)
class Change:
    """A changed option, or a technique with changed knobs."""

    words: str
    alone: Point | None
    """The neighbour with only this change; ``None`` if not measured."""


@dataclass(frozen=True)
class Why:
    """The changes from the ``neighbour`` to the ``point``."""

    neighbour: Point
    point: Point
    changes: tuple[Change, ...]


def why(point: Point | None, shown: Scene, measured: Measured) -> Why | None:
    """Explain a study's point on the front by its left neighbour (the first point: by its right one) among those of
    the same study and model; ``None`` if there is none."""
    if point is None or point.kind != STUDY or point.setting is None:
        return None
    place = shown.index.get(point.key)
    if place not in shown.front:
        return None
    at = shown.walk.index(place)
    for near in chain(reversed(shown.walk[:at]), shown.walk[at + 1 :]):
        neighbour = shown.points[near]
        if neighbour.folder == point.folder and _model(neighbour) == _model(point):
            return Why(neighbour, point, tuple(_changes(neighbour, point, measured)))
    return None


def _model(point: Point) -> str:
    return "" if point.setting is None else point.setting.model


def _changes(neighbour: Point, point: Point, measured: Measured) -> Iterator[Change]:
    before, after = neighbour.setting, point.setting
    assert before is not None and after is not None
    for changed in _each_alone(before, after):
        alone = measured.get((point.folder, changed))
        words = "; ".join("{}: {} → {}".format(*difference_words(one)) for one in setting_differences(before, changed))
        yield Change(words, alone)


def _each_alone(before: Setting, after: Setting) -> Iterator[Setting]:
    """``before`` with each single change towards ``after``: every option, and every technique."""
    for name in sorted(set(before.options) | set(after.options)):
        if before.options.get(name) != after.options.get(name) and name in after.options:
            yield replace(before, options=before.options.replace(**{name: after.options[name]}))
    for name in sorted({one.technique for one in (*before.techniques, *after.techniques)}):
        entry = after.technique(name)
        if entry != before.technique(name):
            yield before.without(name) if entry is None else before.with_technique(entry)


def why_html(one: Why, options: PlotOptions, colours: Colours) -> str:
    """As rich text: every change with its own effect on both axes."""
    moved = _moved(one.neighbour, one.point, options)
    lines = [f"<b>From {escape(one.neighbour.title)}, its neighbour on the front:</b> {moved}"]
    for change in one.changes:
        if change.alone is None:
            effect = f'<span style="color:{colours.muted}">not measured alone</span>'
        elif change.alone is one.point:
            effect = "all of it"
        else:
            effect = f"alone {_moved(one.neighbour, change.alone, options)}"
        lines.append(f"{escape(change.words)}: {effect}")
    return "<br>".join(lines)


def _moved(before: Point, after: Point, options: PlotOptions) -> str:
    found = []
    for axis in dict.fromkeys(one for one in options.axes if not one.knob):
        two = [axis.figure(one, options.ratios) for one in (before, after)]
        if two[0] is not None and two[1] is not None:
            found.append(f"{escape(axis.label(options.ratios))} {said(two[0].value)} → {said(two[1].value)}")
    return ", ".join(found)


def table(shown: Scene, delimiter: str = ",") -> str:
    """One row per shown point, from left to right: every figure with interval and number of takes."""
    rows: list[list[object]] = []
    there = {name for one in shown.points for name in one.figures}
    names = [one.name for one in AXES if one.name in there]
    # Papers may report figures not measured here.
    names += sorted(there - set(names))
    head = ["title", "kind", "source", "model", "techniques", "front", "busy_takes", *_places(shown)]
    columns = [f"{name}{suffix}" for name in names for suffix in ("", "_low", "_high", "_n")]
    judged = [name for name in names if any(name in one.floors for one in shown.points)]
    columns += [f"{name}_of_reference_speech" for name in judged]
    rows.append([*head, *columns, "setting", "machines", "remarks"])
    for index in shown.across:
        one = shown.points[index]
        cells: list[object] = []
        for name in names:
            figure = one.figures.get(name)
            cells += ["", "", "", ""] if figure is None else [figure.value, figure.low, figure.high, figure.n]
        cells += [one.floors[name].value if name in one.floors else "" for name in judged]
        places = [shown.x[index, 0], shown.y[index, 0]]
        rows.append(
            [
                *(
                    one.title,
                    one.kind,
                    one.source,
                    one.model,
                    "+".join(one.techniques),
                    int(index in shown.front),
                    one.busy,
                ),
                *(float(place) for place in places),
                *cells,
                _setting(one),
                "; ".join(one.machines),
                "; ".join(one.remarks),
            ]
        )
    return comma_separated(rows, delimiter)


def _places(shown: Scene) -> list[str]:
    axes = zip("xy", shown.options.axes, shown.logarithmic, strict=True)
    return [f"{side}{' (logarithmic)' * of}: {one.label(shown.options.ratios)}" for side, one, of in axes]


def _setting(one: Point) -> str:
    return "" if one.setting is None else json.dumps(one.setting.to_json(), sort_keys=True)
