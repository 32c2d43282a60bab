"""Texts and tables of the trade-off view and its points. No Qt."""

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
from paretone_app.features.tradeoff.axes import ARROWS, AXES, TradeoffAxis, figure_text
from paretone_app.features.tradeoff.scene import PlotOptions, Scene
from paretone_app.numbers import counted, localised
from paretone_app.results.points import SERVER, STUDY, TAKE, Point
from paretone_app.shell.colours import Colours
from paretone_app.state.differences import difference_words, setting_differences

_FLOOR = "&nbsp;&nbsp;of the reference speech"
_FIRST = ("real_time_factor", "speed_up", "log_mel_distance", "word_error_rate", "naturalness", "voice_similarity")
"""Figures of speed and quality, listed first."""
_LONGEST = 28  # Longest value in a difference, in letters.


@dataclass(frozen=True)
class Reference:
    title: str
    """Within a sentence: ``A``, ``its baseline``."""
    setting: Setting
    text: str = ""
    voice: str = ""
    take: str = ""


def origin(point: Point) -> str:
    if point.published:
        return f"Published: {point.source}"
    if point.kind == SERVER and point.folder is None:
        return point.remarks[0]
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


_OWN = "Each baseline is compared with itself alone: 0 does not tell which of them is better."


def on_axes(point: Point, options: PlotOptions) -> list[str]:
    found = []
    for one in options.axes:
        figure, floor = one.figure(point), one.floor(point)
        if figure is not None:
            reference = "" if floor is None else f", of the reference speech {one.said(floor.value)}"
            # Each baseline is at distance 0 from itself.
            own = one.relative and point.setting is not None and not point.techniques
            reference += " (compared with itself)" if own else ""
            found.append(f"{one.label}: {figure_text(one, figure)}{reference}")
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
    lines += (escape(one) for one in (origin(point), doubt(point), *point.further, *point.machines) if one)
    # Otherwise an unbroken line makes it as wide as the screen.
    return f'<div style="width: 26em">{"<br>".join(lines)}</div>'


def figures_html(point: Point, options: PlotOptions, colours: Colours) -> str:
    """All figures of a point as a table: those of the axes, then speed and quality, then the rest."""
    first = {one.name: one for one in options.axes if not one.knob and one.figure(point) is not None}
    shown = [(one, colours.text) for one in first.values()]
    if not point.published:
        others = [one for one in AXES if one.name in point.figures and one.name not in first]
        others.sort(key=lambda one: one.name not in _FIRST)
        shown += [(one, colours.text if one.name in _FIRST else colours.muted) for one in others]
    lines: list[tuple[str, TradeoffAxis, Estimate, str]] = []
    for one, colour in shown:
        figure, floor = one.figure(point), one.floor(point)
        if figure is not None:
            arrow = ARROWS.get(one.better, "").replace(" ", "&nbsp;")
            lines.append((f"{escape(one.label)}{arrow}", one, figure, colour))
        if floor is not None:
            lines.append((_FLOOR, one, floor, colours.muted))
    numbers = {figure.n for _, _, figure, _ in lines}
    alike = len(numbers) == 1
    spread = any(figure.spreads for _, _, figure, _ in lines)
    head = ("95 %" if spread else "") + (f" (n = {max(numbers)})" if alike and max(numbers) > 1 else "")
    rows = [(("", "", f"<small>{head}</small>", "<small>n</small>"), colours.muted)]
    for name, one, figure, colour in lines:
        value, low, high = map(one.spelt, figure.ends)
        spread_text = "" if low == high else f"<small>{low}–{high}</small>"
        rows.append(((name, f"<b>{value}</b>", spread_text, f"<small>{figure.n or ''}</small>"), colour))
    # The number of takes has a column only where it differs.
    cells = (
        "".join(f"<td style='color:{colour}'>{cell}</td>" for cell in (row[:3] if alike else row))
        for row, colour in rows
    )
    return f"<table cellspacing='0' cellpadding='2'>{''.join(f'<tr>{one}</tr>' for one in cells)}</table>"


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
        found.append(_change(*difference_words(one), colours.text if one.technique else colours.warning))
    head = f"<b>Against {escape(other.title)}:</b> "
    return head + ("".join(f"<br>{one}" for one in found) or "the same setting.")


def comparable(point: Point, other: Reference) -> bool:
    """Whether both are of the same model and, for single takes, of the same text."""
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
    part = f"{played} of the {whole} points on the front, those of one study,"
    which = part if played < whole else f"the front: {played} settings"
    return f"Playing {which} in turn; go to any of them, L stays with one."


def remarks(shown: Scene) -> tuple[str, ...]:
    """Cautions, and why points are not shown, as sentences."""
    relative = any(one.relative for one in shown.options.axes)
    own = {one.candidate for one in shown.points if relative and one.setting is not None and not one.techniques}
    notes = (*shown.notes, *([_OWN] if len(own) > 1 else []))
    if not shown.missing:
        return notes
    total = sum(count for _, count in shown.missing)
    reasons = (f"{reason} ({count})" if len(shown.missing) > 1 else reason for reason, count in shown.missing)
    return (*notes, f"{counted(total, 'point', 'points')} not shown: {'; '.join(reasons)}.")


# --- Explanation of a point on the front ------------------------------------------------------------------------------
Measured = Mapping[tuple[Path | None, Setting], Point]


@dataclass(frozen=True)
class Change:
    words: str
    alone: Point | None
    """The neighbour with only this change; ``None`` if not measured."""


@dataclass(frozen=True)
class Why:
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
        before = neighbour.setting
        if before is not None and neighbour.folder == point.folder and before.model == point.setting.model:
            changes = []
            for changed in _each_alone(before, point.setting):
                words = ("{}: {} → {}".format(*difference_words(one)) for one in setting_differences(before, changed))
                changes.append(Change("; ".join(words), measured.get((point.folder, changed))))
            return Why(neighbour, point, tuple(changes))
    return None


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
        one, two = axis.figure(before), axis.figure(after)
        if one is not None and two is not None:
            found.append(f"{escape(axis.label)} {axis.spelt(one.value)} → {axis.spelt(two.value)}")
    return ", ".join(found)


def table(shown: Scene, delimiter: str = ",") -> str:
    """One row per shown point, from left to right: every figure with interval and number of takes."""
    there = {name for one in shown.points for name in one.figures}
    names = [one.name for one in AXES if one.name in there]
    # Papers may report figures not measured here.
    names += sorted(there - set(names))
    judged = [name for name in names if any(name in one.floors for one in shown.points)]
    axes = zip("xy", shown.options.axes, shown.logarithmic, strict=True)
    rows: list[list[object]] = [
        [
            *("title", "kind", "source", "model", "techniques", "front", "busy_takes"),
            *(
                f"{side}{' (logarithmic)' if logarithmic else ''}: {one.label.removesuffix(' (%)')}"
                for side, one, logarithmic in axes
            ),
            *(f"{name}{suffix}" for name in names for suffix in ("", "_low", "_high", "_n")),
            *(f"{name}_of_reference_speech" for name in judged),
            *("setting", "machines", "remarks"),
        ]
    ]
    for index in shown.across:
        one = shown.points[index]
        techniques, on_front = "+".join(one.techniques), int(index in shown.front)
        row = [one.title, one.kind, one.source, one.model, techniques, on_front, one.busy]
        row += float(shown.x[index, 0]), float(shown.y[index, 0])
        for figure in map(one.figures.get, names):
            row += ("",) * 4 if figure is None else (figure.value, figure.low, figure.high, figure.n)
        row += (one.floors[name].value if name in one.floors else "" for name in judged)
        setting = "" if one.setting is None else json.dumps(one.setting.to_json(), sort_keys=True)
        rows.append([*row, setting, "; ".join(one.machines), "; ".join(one.remarks)])
    return comma_separated(rows, delimiter)
