"""The content of the trade-off view: filtered points, their positions, and the front. No Qt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from pathlib import Path

import numpy as np

from paretone.listening.results import HeardFrom
from paretone.measure.metrics import NEITHER
from paretone.setting.setting import Setting
from paretone.studies.results import costs_of, front
from paretone.techniques.registry import in_order
from paretone_app.features.tradeoff.axes import AXES, TIMES, TradeoffAxis, axis, varied
from paretone_app.listening.preference import MOST_RANKED
from paretone_app.numbers import counted, times
from paretone_app.results.points import SERVER, STUDY, Point

BASELINE, SERVERS = "", "server:"
"""Names in the legend of points without techniques, and of servers."""
ORIGINS = ("source", "ghosts", "model", "voice")


@dataclass(frozen=True)
class Range:
    axis: str
    low: float
    high: float


@dataclass(frozen=True)
class Filter:
    source: str = ""
    """``TAKES``, or the title of a study; ``""`` for all."""
    model: str = ""
    voice: str = ""
    words: str = ""
    """All must occur."""
    hidden: frozenset[str] = frozenset()
    """Names of techniques whose points are hidden, or :data:`BASELINE` and :data:`SERVERS`."""
    only: frozenset[str] | None = None
    """Keys of the only points shown; ``None`` for all."""
    ranges: tuple[Range, ...] = ()
    """All must contain a point's values."""
    ghosts: str = ""
    """The source whose points are ghosts, faint below the others and never on the front; ``""`` for none."""

    def with_origins(self, origins: Mapping[str, str]) -> Filter:
        """A copy with these sources, ghosts, models, voices or words, by field name."""
        return replace(self, **origins)  # type: ignore[arg-type]


@dataclass(frozen=True)
class PlotOptions:
    x: str = "real_time_factor"
    y: str = "log_mel_distance"
    ratios: bool = False
    dominated: bool = True
    """Also show points that another one beats on both axes."""
    published: bool = False
    intervals: bool = True
    log_x: bool = False
    """Whether the X axis is logarithmic, unless no value is positive."""
    log_y: bool = False

    @property
    def axes(self) -> tuple[TradeoffAxis, TradeoffAxis]:
        x, y = axis(self.x), axis(self.y)
        return (x.as_ratio, y.as_ratio) if self.ratios else (x, y)


class Pool:
    """All points, with cached properties for repeated queries."""

    def __init__(
        self,
        points: Sequence[Point] = (),
        published: Sequence[Point] = (),
        heard: Sequence[HeardFrom] = (),
        before: Pool | None = None,
    ) -> None:
        """``heard``: results of staircases along rows of settings; ``before``: a pool with many of these points."""
        self.points = tuple(points) + tuple(published)
        self.heard = tuple(heard)
        self._values: dict[tuple[str, bool], np.ndarray] = {}
        self._before = {} if before is None else before._values
        places = {} if before is None else {id(one): place for place, one in enumerate(before.points)}
        self._places = np.array([places.get(id(one), -1) for one in self.points], int)
        """Of the points in the pool before; −1: new."""

    def values(self, one: TradeoffAxis) -> np.ndarray:
        """(points, 3): value, low and high end of the interval; NaN if missing."""
        key = one.name, one.divided
        if key not in self._values:
            found = self._values[key] = np.full((len(self.points), 3), np.nan)
            known = (self._places >= 0) & (key in self._before)
            if known.any():
                found[known] = self._before[key][self._places[known]]
            for place in np.flatnonzero(~known):
                figure = one.figure(self.points[place])
                if figure is not None and math.isfinite(figure.value):
                    found[place] = figure.value, figure.low, figure.high
        return self._values[key]

    @cached_property
    def own(self) -> np.ndarray:
        """Mask of points that are not published results."""
        return self._where(lambda one: not one.published)

    @cached_property
    def measured(self) -> dict[tuple[Path | None, Setting], Point]:
        return {(one.folder, one.setting): one for one in self.points if one.kind == STUDY and one.setting is not None}

    @cached_property
    def techniques(self) -> tuple[str, ...]:
        return in_order({name for one in self.points for name in one.techniques})

    @cached_property
    def origins(self) -> dict[str, tuple[str, ...]]:
        """Sources, models and voices of own points, by the field of a filter."""
        own = list(compress(self.points, self.own))
        sources = tuple(dict.fromkeys(one.source for one in own))
        models = tuple(dict.fromkeys(one.model for one in own))
        voices = tuple(dict.fromkeys(voice for one in own for voice in one.voices))
        return {"source": sources, "ghosts": sources, "model": models, "voice": voices}

    @cached_property
    def axes(self) -> tuple[TradeoffAxis, ...]:
        """Axes with a value for any own point, and knobs with several values among them."""
        own = list(compress(self.points, self.own))
        known = set().union(*(one.figures for one in own))
        return (*(one for one in AXES if one.name in known), *varied(own))

    def wanted(self, chosen: Filter) -> np.ndarray:
        """Mask of points that pass the filter. Published results are filtered only by technique and words, since
        their models and voices differ."""
        mask = np.ones(len(self.points), bool)
        if chosen.source:
            mask &= ~self.own | self._where(lambda one: one.source == chosen.source)
        if chosen.model:
            mask &= ~self.own | self._where(lambda one: one.model == chosen.model)
        if chosen.voice:
            mask &= ~self.own | self._where(lambda one: chosen.voice in one.voices)
        if chosen.hidden:
            mask &= self._where(lambda one: chosen.hidden.isdisjoint(_names(one)))
        for word in chosen.words.casefold().split():
            mask &= np.array([word in one.haystack for one in self.points], bool)
        for part in chosen.ranges:
            found = self.values(axis(part.axis))[:, 0]
            mask &= ~self.own | ((found >= part.low) & (found <= part.high))
        if (only := chosen.only) is not None:
            mask &= self._where(lambda one: one.key in only)
        return mask

    def _where(self, test: Callable[[Point], bool]) -> np.ndarray:
        return np.fromiter(map(test, self.points), bool, len(self.points))

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of own points per technique, :data:`BASELINE` and :data:`SERVERS` first."""
        found = Counter(name for one in compress(self.points, self.own) for name in _names(one))
        return {name: found[name] for name in (BASELINE, SERVERS, *self.techniques) if found[name]}


def _names(point: Point) -> tuple[str, ...]:
    return point.techniques or (SERVERS if point.kind == SERVER else BASELINE,)


@dataclass(frozen=True)
class Scene:
    """The drawn scene. Arrays and indices refer to ``points``."""

    options: PlotOptions = PlotOptions()
    points: tuple[Point, ...] = ()
    x: np.ndarray = field(default_factory=lambda: np.empty((0, 3)), repr=False)
    """(n, 3): value, low and high end of the interval."""
    y: np.ndarray = field(default_factory=lambda: np.empty((0, 3)), repr=False)
    walk: tuple[int, ...] = ()
    """Points on the front, from left to right."""
    missing: tuple[tuple[str, int], ...] = ()
    """Reasons for missing values, with the number of points."""
    filtered: int = 0
    dominated: int = 0
    notes: tuple[str, ...] = ()
    logarithmic: tuple[bool, bool] = (False, False)
    floors: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    """Judges' scores of the reference speech, on the X axis and on the Y axis."""
    heard: tuple[HeardFrom, ...] = ()
    """Staircase results whose settings are shown, if the X axis is the speed-up."""
    ghosts: frozenset[int] = frozenset()
    """Points of another study, drawn faintly below the others."""
    ghost_front: tuple[int, ...] = ()

    @cached_property
    def index(self) -> dict[str, int]:
        return {one.key: place for place, one in enumerate(self.points)}

    @cached_property
    def front(self) -> frozenset[int]:
        return frozenset(self.walk)

    @cached_property
    def places_on_front(self) -> int:
        """Number of distinct positions on the front: points with equal figures coincide."""
        return len({(float(self.x[one, 0]), float(self.y[one, 0])) for one in self.walk})

    @cached_property
    def across(self) -> tuple[int, ...]:
        """All points, from left to right."""
        return tuple(np.lexsort((self.y[:, 0], self.x[:, 0])).tolist())

    @property
    def identity_of_axes(self) -> tuple[object, object]:
        """Identity of X axis and Y axis: a section is valid only for these."""
        x, y = zip(self.options.axes, self.logarithmic, strict=True)
        return x, y

    @cached_property
    def own(self) -> int:
        """Number of points except published results and ghosts."""
        return sum(not one.published for one in self.points) - len(self.ghosts)

    @cached_property
    def spoken(self) -> tuple[str, ...]:
        """One take per setting with audio; stops beyond the most that can be ranked."""
        found: dict[Setting | None, str] = {}
        for one in self.points:
            if one.sounds and not one.published:
                found[one.setting] = one.sounds[0].take
                if len(found) > MOST_RANKED:
                    break
        return tuple(found.values())

    @cached_property
    def shifts(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a ghost and the point with the same setting, if either is on its front."""
        if not self.ghosts:
            return ()
        there = {point.candidate: place for place, point in enumerate(self.points) if place not in self.ghosts}
        pairs = [(ghost, there.get(self.points[ghost].candidate)) for ghost in sorted(self.ghosts)]
        return tuple(
            (ghost, place)
            for ghost, place in pairs
            if place is not None and (place in self.front or ghost in self.ghost_front)
        )


def scene(pool: Pool, chosen: Filter, options: PlotOptions) -> Scene:
    axes, own, wanted = options.axes, pool.own, pool.wanted(chosen)
    of_another = chosen.ghosts and chosen.ghosts != chosen.source
    beneath = replace(chosen, source=chosen.ghosts, ghosts="") if of_another else None
    x, y = map(pool.values, axes)
    haunting = np.zeros(len(own), bool) if beneath is None else pool.wanted(beneath) & own
    wanted &= ~haunting
    placed = ~np.isnan(x[:, 0]) & ~np.isnan(y[:, 0])
    notes: list[str] = []
    logarithmic: list[bool] = []
    for one, found, asked in zip(axes, (x, y), (options.log_x, options.log_y), strict=True):
        there = found[wanted & own & placed, 0]
        # A linear axis is better than an empty plot.
        refused = asked and len(there) > 0 and not (there > 0.0).any()
        if refused:
            which = "the one point is not" if len(there) == 1 else f"none of the {len(there)} points is"
            notes.append(f"{one.title} stays linear: {which} above 0, as a logarithmic axis requires.")
        logarithmic.append(asked and not refused)
    for found in compress((x, y), logarithmic):
        placed &= found[:, 0] > 0.0
    shown, haunting = wanted & placed & own, haunting & placed
    missing = _missing(pool, np.flatnonzero(wanted & own & ~placed), axes, logarithmic)
    best, best_ghosts = np.zeros(len(own), bool), np.zeros(len(own), bool)
    if known := next((one for one in axes if one.better == NEITHER), None):
        notes.append(f"There is no front: neither end of {known.title} is better.")
    else:
        for among, found in ((shown, best), (haunting, best_ghosts)):
            places = np.flatnonzero(among)
            costs = costs_of(np.c_[x[places, 0], y[places, 0]], (axes[0].better, axes[1].better))
            found[places[front(costs)]] = True
    dominated = 0
    if not options.dominated and best.any():
        dominated = int((shown & ~best).sum())
        shown &= best
    if beneath is not None and not haunting.any():
        notes.append(f"No point of {beneath.source} has a place here.")
    timed = next((one for one in axes if one.name in TIMES and not one.divided), None)
    if timed is not None:
        machines = {machine for place in np.flatnonzero(shown | haunting) for machine in pool.points[place].machines}
        if len(machines) > 1:
            which = f"The points are from {len(machines)} machines"
            notes.append(f"{which}; {timed.title} can be compared on one machine only.")
    published = wanted & placed & ~own if options.published else np.zeros(len(own), bool)
    if options.published and not published.any():
        notes.append(_why_none_published(axes))
    # Published results first, then ghosts: drawn below.
    order = np.concatenate([np.flatnonzero(one) for one in (published, haunting, shown)])
    points, shown_x, shown_y = tuple(pool.points[place] for place in order), x[order], y[order]

    def from_the_left(mask: np.ndarray) -> tuple[int, ...]:
        places = np.flatnonzero(mask[order])
        return tuple(places[np.lexsort((shown_y[places, 0], shown_x[places, 0]))].tolist())

    heard: tuple[HeardFrom, ...] = ()
    if pool.heard and axes[0].name == "speed_up":
        candidates = {one.candidate for one in points if not one.published}
        heard = tuple(one for one in pool.heard if len(one.candidates & candidates) > 1)
        notes += map(_heard_in_words, heard)
    log_x, log_y = logarithmic
    return Scene(
        options,
        points,
        shown_x,
        shown_y,
        walk=from_the_left(best),
        missing=missing,
        filtered=int((own & ~wanted & ~haunting).sum()),
        dominated=dominated,
        notes=tuple(notes),
        logarithmic=(log_x, log_y),
        floors=(_floors(points, axes[0], log_x), _floors(points, axes[1], log_y)),
        heard=heard,
        ghosts=frozenset(np.flatnonzero(haunting[order]).tolist()),
        ghost_front=from_the_left(best_ghosts),
    )


def _heard_in_words(one: HeardFrom) -> str:
    if math.isinf(one.value):
        return "Along these settings no difference was heard every second time, in a blind staircase."
    if one.value == 0.0:
        return "Along these settings a difference was heard from the slowest on, in a blind staircase."
    low = "below the slowest" if one.low == 0.0 else times(one.low)
    high = "beyond the fastest" if math.isinf(one.high) else times(one.high)
    return (
        f"Along these settings a difference was heard from {times(one.value)} on (95 % interval {low} to {high}), "
        "in a blind staircase."
    )


def _floors(points: Sequence[Point], one: TradeoffAxis, logarithmic: bool) -> tuple[float, ...]:
    """Distinct judges' scores of the reference speech for ``points``, ascending."""
    if not one.judged:
        return ()
    found = {floor.value for point in points if (floor := one.floor(point)) is not None}
    return tuple(sorted(value for value in found if value > 0.0 or not logarithmic))


def _missing(
    pool: Pool, places: np.ndarray, axes: Sequence[TradeoffAxis], logarithmic: Sequence[bool]
) -> tuple[tuple[str, int], ...]:
    reasons: Counter[str] = Counter()
    for place, *found in zip(places, *(pool.values(one)[places, 0].tolist() for one in axes), strict=True):
        values = dict(zip(axes, found, strict=True))
        without = next((one for one, value in values.items() if math.isnan(value)), None)
        if without is not None:
            reasons[without.why_not(pool.points[place])] += 1
        else:
            value, title = min((values[one], one.title) for one in compress(axes, logarithmic))
            reasons[f"{title} is {'0' if value == 0.0 else 'below 0'}, outside a logarithmic axis"] += 1
    return tuple(reasons.most_common())


def _why_none_published(axes: Sequence[TradeoffAxis]) -> str:
    absolute = [one for one in axes if not one.is_ratio]
    if not absolute:
        return "No published result has figures on both axes, or the filter hides them."
    never = next((one for one in absolute if not one.takes_ratios), None)
    if never is None:
        return "Published results are ratios to their own baselines: choose Ratios to see them."
    return f"No published results here: no paper reports {never.title}."


# --- The method of limits ---------------------------------------------------------------------------------------------
# The listener moves along the front and marks where a difference becomes audible or inaudible. Quick but not blind.
@dataclass(frozen=True)
class Crossing:
    """A step between neighbouring points of the front at which the audibility of a difference changed."""

    before: str
    after: str
    heard: bool
    """True: now heard, towards faster settings; False: no longer heard, on the way back."""


@dataclass(frozen=True)
class Limit:
    """Value on the X axis from which on a difference is heard: mean, least and greatest of the crossings."""

    value: float
    low: float
    high: float
    crossings: int


def limit(crossings: Sequence[Crossing], shown: Scene) -> Limit | None:
    """Limit from the crossings with both points ``shown``, each halfway between them, as a geometric mean if all values
    are positive, such as speed-ups; ``None`` if there are none."""
    pairs = [(shown.index.get(one.before), shown.index.get(one.after)) for one in crossings]
    ends = np.array([pair for pair in pairs if None not in pair], int).reshape(-1, 2)
    if not len(ends):
        return None
    values = shown.x[ends, 0]
    if geometric := bool((values > 0).all()):
        values = np.log(values)
    middles = values.mean(1)
    found = [float(one) for one in (middles.mean(), middles.min(), middles.max())]
    value, low, high = map(math.exp, found) if geometric else found
    return Limit(value, low, high, len(ends))


def in_words(one: Limit, shown: Scene) -> str:
    axis = shown.options.axes[0]
    at = f"{axis.spelt(one.value)}×" if axis.unit == "times" else f"{axis.title} {axis.said(one.value)}"
    several = f", {axis.spelt(one.low)} to {axis.spelt(one.high)}" if one.high > one.low else ""
    marks = counted(one.crossings, "mark", "marks")
    return f"Difference heard from {at} ({marks}{several}): quick, and not blind."
