"""Styles of points in the trade-off view, and the view as a scatter plot: each technique has a colour and a shape,
points with two techniques are half each; settings of studies are filled, single takes hollow, published results
dotted."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from paretone.figures.glyphs import (
    DOTTED,
    FILLED,
    HOLLOW,
    MORE_DARK,
    MORE_LIGHT,
    SERIES_DARK,
    SERIES_LIGHT,
    Glyph,
    Glyphs,
)
from paretone.figures.scatter import Dimension, Scatter
from paretone.setting.setting import Setting
from paretone.studies.curves import without_knob
from paretone.techniques.registry import in_order, technique_mark
from paretone_app.features.tradeoff.axes import WALL_TIMES, TradeoffAxis
from paretone_app.features.tradeoff.scene import Scene
from paretone_app.results.points import PUBLISHED, STUDY, TAKE, technique_title
from paretone_app.shell.colours import DARK, Colours

FILLS = {TAKE: HOLLOW, STUDY: FILLED, PUBLISHED: DOTTED}
_KINDS = {TAKE: "single take", STUDY: "setting of a study", PUBLISHED: "published"}


class PointStyles(Glyphs):
    """Colours and shapes of techniques in a theme."""

    def ghost(self, names: tuple[str, ...]) -> Glyph:
        """Style of a ghost: as its setting's, but barely visible."""
        made = self.glyph(names, FILLED)
        return replace(made, colours=tuple(_mixed(one, self.colours.base) for one in made.colours))

    def __init__(self, colours: Colours) -> None:
        self.colours = colours
        palette = (*SERIES_DARK, *MORE_DARK) if colours == DARK else (*SERIES_LIGHT, *MORE_LIGHT)
        super().__init__(technique_mark, palette, colours.text)


def described(shown: Scene, looks: PointStyles) -> Scatter:
    """The scatter plot of ``shown``."""
    x, y = (
        _dimension(one, shown.options.ratios, logarithmic, floors)
        for one, logarithmic, floors in zip(shown.options.axes, shown.logarithmic, shown.floors, strict=True)
    )
    glyph, looks_of, labels = looks.glyph, FILLS, [""] * len(shown.points)
    for place in shown.walk:
        labels[place] = shown.points[place].title
    return Scatter(
        x,
        y,
        shown.x,
        shown.y,
        tuple(
            [
                looks.ghost(one.techniques) if place in shown.ghosts else glyph(one.techniques, looks_of[one.kind])
                for place, one in enumerate(shown.points)
            ]
        ),
        tuple(labels),
        front=shown.walk,
        strands=(*_tables(shown), *_curves(shown), *_of_ghosts(shown)),
        level_title="reference speech",
        intervals=shown.options.intervals,
        doubtful=_doubtful(shown),
    )


def _doubtful(shown: Scene) -> tuple[int, ...]:
    """Points with a value on an axis that other processes have affected."""
    if not any(one.name in WALL_TIMES for one in shown.options.axes):
        return ()
    return tuple(place for place, one in enumerate(shown.points) if one.busy)


def _dimension(one: TradeoffAxis, ratios: bool, logarithmic: bool, floors: tuple[float, ...]) -> Dimension:
    title = one.label(ratios) + (", logarithmic" if logarithmic else "")
    return Dimension(title, title if ratios else one.title, one.better, logarithmic, floors)


def _tables(shown: Scene) -> Iterator[tuple[int, ...]]:
    """The published results of each table, as lines."""
    published = [(place, one) for place, one in enumerate(shown.points) if one.published]
    for _, table in itertools.groupby(published, lambda one: (one[1].source, one[1].model)):
        yield tuple(place for place, _ in table)


def _of_ghosts(shown: Scene) -> Iterator[tuple[int, ...]]:
    """The ghosts' front, and lines from ghosts to the same settings."""
    if len(shown.ghost_front) > 1:
        yield shown.ghost_front
    yield from shown.shifts


def _curves(shown: Scene) -> Iterator[tuple[int, ...]]:
    """Lines through settings of one study that differ only in the knob on an axis, in the order of its values."""
    for one, places in zip(shown.options.axes, (shown.x, shown.y), strict=True):
        lines: dict[tuple[str, Setting], list[int]] = defaultdict(list)
        for place, point in enumerate(shown.points if one.knob else ()):
            if point.kind == STUDY and point.setting is not None:
                lines[point.source, without_knob(point.setting, one.technique, one.knob)].append(place)
        for line in lines.values():
            if len(line) > 1:
                yield tuple(sorted(line, key=lambda place: float(places[place, 0])))


def legend(shown: Scene, looks: PointStyles) -> Iterator[tuple[Glyph, str]]:
    """Techniques with their styles, and kinds of points if there are several."""
    names = in_order({name for one in shown.points for name in one.techniques})
    if any(not one.techniques and not one.published for one in shown.points):
        yield looks.glyph(()), "Baseline"
    for name in names:
        yield looks.glyph((name,)), technique_title(name)
    there = {one.kind for one in shown.points}
    if shown.ghosts:
        ghosts = dict.fromkeys(shown.points[place].source for place in sorted(shown.ghosts))
        yield looks.ghost(names[:1]), f"ghost: {', '.join(ghosts)}"
    for kind, text in _KINDS.items() if len(there) > 1 else ():
        if kind in there:
            yield looks.glyph(names[:1], FILLS[kind]), text


_FAINT = 0.3
"""Share of its colour that a ghost keeps."""


def _mixed(colour: str, ground: str) -> str:
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(ground[1:]), strict=True)
    return "#" + bytes(round(_FAINT * one + (1 - _FAINT) * other) for one, other in pairs).hex()
