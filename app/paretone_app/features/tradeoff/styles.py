"""Styles of points in the trade-off view, and the view as a scatter plot."""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from paretone.figures import glyphs
from paretone.figures.scatter import Dimension, Scatter
from paretone.setting.setting import Setting
from paretone.studies.curves import without_knob
from paretone.techniques.registry import in_order, technique_mark
from paretone_app.features.tradeoff.axes import WALL_TIMES, TradeoffAxis
from paretone_app.features.tradeoff.scene import Scene
from paretone_app.results.points import PUBLISHED, SERVER, STUDY, TAKE, Point, technique_title
from paretone_app.shell.colours import DARK, Colours

FILLS = {TAKE: glyphs.HOLLOW, STUDY: glyphs.FILLED, PUBLISHED: glyphs.DOTTED, SERVER: glyphs.FILLED}
_KINDS = {TAKE: "single take", STUDY: "setting of a study", PUBLISHED: "published"}


class PointStyles(glyphs.Glyphs):
    def __init__(self, colours: Colours) -> None:
        self.colours = colours
        palette = (
            (*glyphs.SERIES_DARK, *glyphs.MORE_DARK) if colours == DARK else (*glyphs.SERIES_LIGHT, *glyphs.MORE_LIGHT)
        )
        super().__init__(technique_mark, palette, colours.text)

    def of(self, point: Point) -> glyphs.Glyph:
        return self.server() if point.kind == SERVER else self.glyph(point.techniques, FILLS[point.kind])

    def ghost(self, names: tuple[str, ...]) -> glyphs.Glyph:
        """Style of a ghost: as its setting's, but barely visible."""
        made = self.glyph(names, glyphs.FILLED)
        return replace(made, colours=tuple(_mixed(one, self.colours.base) for one in made.colours))


def described(shown: Scene, looks: PointStyles) -> Scatter:
    x, y = map(_dimension, shown.options.axes, shown.logarithmic, shown.floors)
    drawn = (
        looks.ghost(one.techniques) if place in shown.ghosts else looks.of(one)
        for place, one in enumerate(shown.points)
    )
    ghosts = [shown.ghost_front] if len(shown.ghost_front) > 1 else []
    timed = any(one.name in WALL_TIMES for one in shown.options.axes)
    labels = (one.title if place in shown.front else "" for place, one in enumerate(shown.points))
    return Scatter(
        *(x, y, shown.x, shown.y, tuple(drawn), tuple(labels)),
        front=shown.walk,
        strands=(*_tables(shown), *_curves(shown), *ghosts, *shown.shifts),
        level_title="reference speech",
        intervals=shown.options.intervals,
        doubtful=tuple(place for place, one in enumerate(shown.points) if timed and one.busy),
    )


def _dimension(one: TradeoffAxis, logarithmic: bool, floors: tuple[float, ...]) -> Dimension:
    title = one.label + (", logarithmic" if logarithmic else "")
    return Dimension(
        title, title if one.divided else one.title, one.better, logarithmic, floors, "" if one.knob else one.unit
    )


def _tables(shown: Scene) -> Iterator[tuple[int, ...]]:
    published = (place for place, one in enumerate(shown.points) if one.published)
    for _, table in itertools.groupby(published, lambda at: (shown.points[at].source, shown.points[at].model)):
        yield tuple(table)


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


def legend(shown: Scene, looks: PointStyles) -> Iterator[tuple[glyphs.Glyph, str]]:
    """Techniques with their styles, and kinds of points if there are several."""
    names = in_order({name for one in shown.points for name in one.techniques})
    if any(not one.techniques and one.kind in (TAKE, STUDY) for one in shown.points):
        yield looks.glyph(()), "Baseline"
    if any(one.kind == SERVER for one in shown.points):
        yield looks.server(), "Server"
    for name in names:
        yield looks.glyph((name,)), technique_title(name)
    if shown.ghosts:
        ghosts = dict.fromkeys(shown.points[place].source for place in sorted(shown.ghosts))
        yield looks.ghost(names[:1]), f"ghost: {', '.join(ghosts)}"
    kinds = [kind for kind in _KINDS if any(one.kind == kind for one in shown.points)]
    for kind in kinds if len(kinds) > 1 else ():
        yield looks.glyph(names[:1], FILLS[kind]), _KINDS[kind]


_FAINT = 0.3  # Share of its colour that a ghost keeps.


def _mixed(colour: str, ground: str) -> str:
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(ground[1:]), strict=True)
    return "#" + bytes(round(_FAINT * one + (1 - _FAINT) * other) for one, other in pairs).hex()
