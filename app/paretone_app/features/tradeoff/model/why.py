"""Why a point of the front is where it is: in what its setting differs from that of its neighbour, and what each of the
differences does alone, where the study has measured that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from itertools import chain
from pathlib import Path

from paretone.setting.setting import Setting
from paretone_app.features.tradeoff.model.axes import said
from paretone_app.features.tradeoff.model.scene import PlotOptions, Scene
from paretone_app.results.points import STUDY, Point
from paretone_app.shell.colours import Colours
from paretone_app.state.differences import difference_words, setting_differences

Measured = Mapping[tuple[Path | None, Setting], Point]
"""Points of studies, by folder and setting."""


@dataclass(frozen=True)
class Change:
    """An option, or a technique with all of its knobs, that differs."""

    words: str
    alone: Point | None
    """The neighbour with this change and no other; ``None`` where that is not measured."""


@dataclass(frozen=True)
class Why:
    """What leads from the ``neighbour`` to the ``point``."""

    neighbour: Point
    point: Point
    changes: tuple[Change, ...]


def why(point: Point | None, shown: Scene, measured: Measured) -> Why | None:
    """Of a study's point on the front, from the one before it, for the first from the one after it, among those of the
    same study and model; ``None`` if there is none."""
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
    """``before`` with each of the changes that lead to ``after`` by itself: every option, and every technique."""
    for name in sorted(set(before.options) | set(after.options)):
        if before.options.get(name) != after.options.get(name) and name in after.options:
            yield replace(before, options=before.options.replace(**{name: after.options[name]}))
    for name in sorted({one.technique for one in (*before.techniques, *after.techniques)}):
        entry = after.technique(name)
        if entry != before.technique(name):
            yield before.without(name) if entry is None else before.with_technique(entry)


def why_html(one: Why, options: PlotOptions, colours: Colours) -> str:
    """As rich text: every change with what it does alone on both axes."""
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
