"""The content of the trade-off view: filtered points, their positions, and the front. No Qt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
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
from paretone_app.features.tradeoff.axes import AXES, TIMES, TradeoffAxis, axis, said, values, varied
from paretone_app.listening.preference import MOST_RANKED
from paretone_app.numbers import counted, fixed
from paretone_app.results.points import PUBLISHED, STUDY, Point

BASELINE = ""
"""Stands for "no technique"."""
ORIGINS = ("source", "ghosts", "model", "voice")
"""Fields of a filter for the origin of points."""


@dataclass(frozen=True)
class Range:
    axis: str
    """Name of the figure or knob."""
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
    """Names of techniques whose points are hidden; :data:`BASELINE` for points without techniques."""
    only: frozenset[str] | None = None
    """Keys of the only points shown; ``None`` for all."""
    ranges: tuple[Range, ...] = ()
    """All must contain a point's values."""
    ghosts: str = ""
    """``TAKES``, or the title of a study, whose points are ghosts: drawn faintly below the others, never on the
    front; ``""`` for none."""

    def with_origins(self, origins: Mapping[str, str]) -> Filter:
        """A copy with these sources, ghosts, models, voices or words, by field name."""
        return replace(
            self,
            source=origins.get("source", self.source),
            ghosts=origins.get("ghosts", self.ghosts),
            model=origins.get("model", self.model),
            voice=origins.get("voice", self.voice),
            words=origins.get("words", self.words),
        )

    @property
    def filters(self) -> bool:
        """Whether it hides anything."""
        return self != Filter()

    @property
    def of_ghosts(self) -> Filter | None:
        """The filter for the ghosts; ``None`` without ghosts."""
        if not self.ghosts or self.ghosts == self.source:
            return None
        return replace(self, source=self.ghosts, ghosts="")


@dataclass(frozen=True)
class PlotOptions:
    x: str = "real_time_factor"
    y: str = "log_mel_distance"
    ratios: bool = False
    """Divide values by the baselines', if meaningful."""
    dominated: bool = True
    """Also show points that another one beats on both axes."""
    published: bool = False
    intervals: bool = True
    log_x: bool = False
    """Whether the X axis is logarithmic, unless no value is positive."""
    log_y: bool = False

    @property
    def axes(self) -> tuple[TradeoffAxis, TradeoffAxis]:
        return axis(self.x), axis(self.y)


class Pool:
    """All points, with cached properties for repeated queries."""

    def __init__(
        self, points: Sequence[Point] = (), published: Sequence[Point] = (), heard: Sequence[HeardFrom] = ()
    ) -> None:
        """``heard``: results of staircases along rows of settings."""
        self.points = tuple(points) + tuple(published)
        self.heard = tuple(heard)
        self.index = {one.key: place for place, one in enumerate(self.points)}
        self._values: dict[tuple[str, bool], np.ndarray] = {}
        self._words: dict[str, np.ndarray] = {}

    def values(self, one: TradeoffAxis, ratios: bool) -> np.ndarray:
        """As :func:`paretone_app.features.tradeoff.axes.values`, for all points."""
        key = one.name, ratios and one.takes_ratios
        # Published results have only ratios, so one metric differs for them with and without ratios.
        if key not in self._values:
            self._values[key] = values(self.points, one, ratios)
        return self._values[key]

    @cached_property
    def own(self) -> np.ndarray:
        """Mask of points that are not published results."""
        return np.array([one.kind != PUBLISHED for one in self.points], bool)

    @cached_property
    def measured(self) -> dict[tuple[Path | None, Setting], Point]:
        return {(one.folder, one.setting): one for one in self.points if one.kind == STUDY and one.setting is not None}

    @cached_property
    def _sources(self) -> np.ndarray:
        return np.array([one.source for one in self.points], object)

    @cached_property
    def _models(self) -> np.ndarray:
        return np.array([one.model for one in self.points], object)

    @cached_property
    def _bits(self) -> np.ndarray:
        """Bit mask of each point's techniques; the first bit means none."""
        places = {name: 1 << place for place, name in enumerate((BASELINE, *self.techniques))}
        return np.array([sum(places[name] for name in one.techniques or (BASELINE,)) for one in self.points], np.int64)

    @cached_property
    def _haystacks(self) -> tuple[str, ...]:
        return tuple(one.haystack for one in self.points)

    @cached_property
    def techniques(self) -> tuple[str, ...]:
        """All techniques of the points, in order."""
        return in_order({name for one in self.points for name in one.techniques})

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.source for one in self.points if not one.published))

    @cached_property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.model for one in self.points if not one.published))

    @cached_property
    def voices(self) -> tuple[str, ...]:
        """Voices of the points' takes."""
        return tuple(dict.fromkeys(voice for one in self.points for voice in one.voices))

    @cached_property
    def axes(self) -> tuple[TradeoffAxis, ...]:
        """Axes with a value for any own point, and knobs with several values among them."""
        own = [one for one in self.points if not one.published]
        known = set().union(*(one.figures for one in own))
        return (*(one for one in AXES if one.name in known), *varied(own))

    def wanted(self, chosen: Filter) -> np.ndarray:
        """Mask of points that pass the filter. Published results are filtered only by technique and words, since
        their models and voices differ."""
        mask = np.ones(len(self.points), bool)
        if chosen.source:
            mask &= ~self.own | (self._sources == chosen.source)
        if chosen.model:
            mask &= ~self.own | (self._models == chosen.model)
        if chosen.voice:
            mask &= ~self.own | np.array([chosen.voice in one.voices for one in self.points], bool)
        if chosen.hidden:
            places = {name: 1 << place for place, name in enumerate((BASELINE, *self.techniques))}
            hidden = sum(places.get(name, 0) for name in chosen.hidden)
            mask &= (self._bits & hidden) == 0
        for word in chosen.words.casefold().split():
            mask &= self._with(word)
        for part in chosen.ranges:
            found = self.values(axis(part.axis), False)[:, 0]
            mask &= ~self.own | ((found >= part.low) & (found <= part.high))
        if chosen.only is not None:
            mask &= np.array([one.key in chosen.only for one in self.points], bool)
        return mask

    def _with(self, word: str) -> np.ndarray:
        if word not in self._words:
            if len(self._words) > 64:
                self._words.clear()
            self._words[word] = np.array([word in one for one in self._haystacks], bool)
        return self._words[word]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of own points per technique, :data:`BASELINE` first."""
        found = Counter(name for one in self.points if not one.published for name in one.techniques or (BASELINE,))
        return {name: found[name] for name in (BASELINE, *self.techniques) if found[name]}


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
    """Own points hidden by the filter."""
    dominated: int = 0
    """Own points hidden because they are not on the front."""
    notes: tuple[str, ...] = ()
    logarithmic: tuple[bool, bool] = (False, False)
    """Whether the X axis and the Y axis are logarithmic."""
    floors: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    """Judges' scores of the reference speech, on the X axis and on the Y axis."""
    heard: tuple[HeardFrom, ...] = ()
    """Staircase results whose settings are shown, if the X axis is the speed-up."""
    ghosts: frozenset[int] = frozenset()
    """Points of another study, drawn faintly below the others."""
    ghost_front: tuple[int, ...] = ()
    """The front of the ghosts, from left to right."""

    @cached_property
    def index(self) -> dict[str, int]:
        """Index of each point by key."""
        return {one.key: place for place, one in enumerate(self.points)}

    @cached_property
    def front(self) -> frozenset[int]:
        """The points of :attr:`walk`."""
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
        options = self.options
        x, y = (
            (one.name, options.ratios and one.takes_ratios, logarithmic)
            for one, logarithmic in zip(options.axes, self.logarithmic, strict=True)
        )
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
        there = {point.candidate: place for place, point in enumerate(self.points) if place not in self.ghosts}
        pairs = [(ghost, there.get(self.points[ghost].candidate)) for ghost in sorted(self.ghosts)]
        return tuple(
            (ghost, place)
            for ghost, place in pairs
            if place is not None and (place in self.front or ghost in self.ghost_front)
        )


def scene(pool: Pool, chosen: Filter, options: PlotOptions) -> Scene:
    x_axis, y_axis = options.axes
    x, y = (pool.values(one, options.ratios) for one in options.axes)
    own = pool.own
    wanted = pool.wanted(chosen)
    beneath = chosen.of_ghosts
    haunting = np.zeros(len(own), bool) if beneath is None else pool.wanted(beneath) & own
    wanted &= ~haunting
    placed = ~np.isnan(x[:, 0]) & ~np.isnan(y[:, 0])
    notes: list[str] = []
    logarithmic: list[bool] = []
    for one, found, asked in zip(options.axes, (x, y), (options.log_x, options.log_y), strict=True):
        there = found[wanted & own & placed, 0]
        # A linear axis is better than an empty plot.
        refused = asked and len(there) > 0 and not (there > 0.0).any()
        if refused:
            which = "the one point is not" if len(there) == 1 else f"none of the {len(there)} points is"
            notes.append(f"{one.title} stays linear: {which} above 0, as a logarithmic axis requires.")
        logarithmic.append(asked and not refused)
    log_x, log_y = logarithmic
    for found, of in ((x, log_x), (y, log_y)):
        if of:
            placed &= found[:, 0] > 0.0
    shown, haunting = wanted & placed & own, haunting & placed
    missing = _missing(pool, np.flatnonzero(wanted & own & ~placed), options, logarithmic)
    best, best_ghosts = np.zeros(len(own), bool), np.zeros(len(own), bool)
    if NEITHER in (x_axis.better, y_axis.better):
        known = next(one for one in options.axes if one.better == NEITHER)
        notes.append(f"There is no front: neither end of {known.title} is better.")
    else:
        for among, found in ((shown, best), (haunting, best_ghosts)):
            places = np.flatnonzero(among)
            costs = costs_of(np.c_[x[places, 0], y[places, 0]], (x_axis.better, y_axis.better))
            found[places[front(costs)]] = True
    dominated = 0
    if not options.dominated and best.any():
        dominated = int((shown & ~best).sum())
        shown &= best
    if beneath is not None and not haunting.any():
        notes.append(f"No point of {beneath.source} has a place here.")
    notes += _cautions(pool, shown | haunting, options)
    published = wanted & placed & ~own if options.published else np.zeros(len(own), bool)
    if options.published and not published.any():
        notes.append(_why_none_published(options))
    # Published results first, then ghosts: drawn below.
    chosen_places = np.r_[np.flatnonzero(published), np.flatnonzero(haunting), np.flatnonzero(shown)].astype(int)
    on_front = np.flatnonzero(best[chosen_places])
    kept_x, kept_y = x[chosen_places], y[chosen_places]
    kept = tuple(pool.points[place] for place in chosen_places)
    heard = _heard(pool.heard, kept, x_axis)
    notes += map(_heard_in_words, heard)
    walk = _from_the_left(on_front, kept_x, kept_y)
    ghost_front = _from_the_left(np.flatnonzero(best_ghosts[chosen_places]), kept_x, kept_y)
    return Scene(
        options,
        kept,
        kept_x,
        kept_y,
        walk,
        missing,
        int((own & ~wanted & ~haunting).sum()),
        dominated,
        tuple(notes),
        (log_x, log_y),
        (_floors(kept, x_axis, options.ratios, log_x), _floors(kept, y_axis, options.ratios, log_y)),
        heard,
        frozenset(np.flatnonzero(haunting[chosen_places]).tolist()),
        ghost_front,
    )


def _from_the_left(places: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[int, ...]:
    return tuple(places[np.lexsort((y[places, 0], x[places, 0]))].tolist())


def _heard(found: Sequence[HeardFrom], points: Sequence[Point], across: TradeoffAxis) -> tuple[HeardFrom, ...]:
    """Staircase results with at least two of their settings shown."""
    if not found or across.name != "speed_up":
        return ()
    shown = {one.candidate for one in points if not one.published}
    return tuple(one for one in found if len(one.candidates & shown) > 1)


def _heard_in_words(one: HeardFrom) -> str:
    if math.isinf(one.value):
        return "Along these settings no difference was heard every second time, in a blind staircase."
    if one.value == 0.0:
        return "Along these settings a difference was heard from the slowest on, in a blind staircase."
    low = "below the slowest" if one.low == 0.0 else f"{fixed(one.low, 2)}×"
    high = "beyond the fastest" if math.isinf(one.high) else f"{fixed(one.high, 2)}×"
    return (
        f"Along these settings a difference was heard from {fixed(one.value, 2)}× on (95 % interval {low} to {high}), "
        "in a blind staircase."
    )


def _floors(points: Sequence[Point], one: TradeoffAxis, ratios: bool, logarithmic: bool) -> tuple[float, ...]:
    """Distinct judges' scores of the reference speech for ``points``, ascending."""
    if not one.judged:
        return ()
    found = {floor.value for point in points if (floor := one.floor(point, ratios)) is not None}
    return tuple(sorted(value for value in found if value > 0.0 or not logarithmic))


def _missing(
    pool: Pool, places: np.ndarray, options: PlotOptions, logarithmic: Sequence[bool]
) -> tuple[tuple[str, int], ...]:
    reasons: Counter[str] = Counter()
    for place in places:
        point = pool.points[place]
        without = next((one for one in options.axes if np.isnan(pool.values(one, options.ratios)[place, 0])), None)
        if without is not None:
            reasons[without.why_not(point, options.ratios)] += 1
        else:
            on = [
                (pool.values(one, options.ratios)[place, 0], one.title) for one in compress(options.axes, logarithmic)
            ]
            value, title = min(on)
            less = "0" if value == 0.0 else "below 0"
            reasons[f"{title} is {less}, outside a logarithmic axis"] += 1
    return tuple(reasons.most_common())


def _cautions(pool: Pool, shown: np.ndarray, options: PlotOptions) -> list[str]:
    known = next((one for one in options.axes if one.name in TIMES and not options.ratios), None)
    if known is None:
        return []
    machines = {machine for place in np.flatnonzero(shown) for machine in pool.points[place].machines}
    if len(machines) < 2:
        return []
    return [f"The points are from {len(machines)} machines; {known.title} can be compared on one machine only."]


def _why_none_published(options: PlotOptions) -> str:
    absolute = [one for one in options.axes if not one.is_ratio(options.ratios)]
    if not absolute:
        return "No published result has figures on both axes, or the filter hides them."
    never = next((one for one in absolute if not one.takes_ratios), None)
    if never is None:
        return "Published results are ratios to their own baselines: choose Ratios to see them."
    return f"No published results here: no paper reports {never.title}."


# --- The method of limits ---------------------------------------------------------------------------------------------
# The listener moves along the front and marks where a difference becomes audible or inaudible. Quick but not blind: the
# direction of faster settings is known.
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
    """Limit from the crossings with both points ``shown``, each halfway between them; ``None`` if there are none.

    Means are geometric if all values are positive, such as speed-ups."""
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


def _at(value: float, axis: TradeoffAxis, unit: str) -> str:
    return f"{said(value)}×" if unit == "times" else f"{axis.title} {said(value, unit)}"


def in_words(one: Limit, shown: Scene) -> str:
    axis = shown.options.axes[0]
    unit = "" if shown.options.ratios and axis.takes_ratios else axis.unit
    several = f", {said(one.low)} to {said(one.high)}" if one.high > one.low else ""
    marks = counted(one.crossings, "mark", "marks")
    return f"Difference heard from {_at(one.value, axis, unit)} ({marks}{several}): quick, and not blind."
