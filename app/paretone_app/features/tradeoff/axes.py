"""Axes of the trade-off view, values of points on them, and why a value is missing. No Qt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from paretone.measure.estimates import Estimate
from paretone.measure.metrics import HIGHER, LOWER, METRICS, NEITHER
from paretone.models import catalogue
from paretone.setting.knobs import Knob, Number
from paretone.setting.setting import Setting
from paretone.techniques import techniques
from paretone.wording import in_unit, per_one
from paretone_app.numbers import displayed, general
from paretone_app.results.points import LISTENING, PUBLISHED, SERVER, TAKE, Point, technique_title

RATIOS_ALREADY = ("speed_up", "ops_ratio")
"""Metrics that are already ratios to the baseline."""
WALL_TIMES = frozenset(one.name for one in METRICS if one.wall_time)
"""Metrics affected by other processes on the machine."""
TIMES = WALL_TIMES | {"cpu_time_factor", "peak_memory"}
"""Metrics comparable only between takes of one machine."""
ARROWS = {LOWER: " ↓", HIGHER: " ↑"}
"""After the title of a figure: which end is better."""
_BY_EAR = " (listening test)"  # Suffix of the titles of listening scores.


@dataclass(frozen=True)
class TradeoffAxis:
    name: str
    title: str
    definition: str
    better: str
    unit: str = ""
    relative: bool = False
    """Whether it is measured against the baseline, whose own value is meaningless."""
    studied: bool = False
    judged: bool = False
    of_runs: bool = False
    """Whether takes have it only over their repeats."""
    technique: str = ""
    """For a knob axis: the technique's name, ``""`` for options of models."""
    knob: str = ""
    divided: bool = False

    @property
    def label(self) -> str:
        if self.divided:
            return f"{self.title} ÷ baseline’s"
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def spelt(self, value: float) -> str:
        return general(value) if self.knob else displayed(in_unit(value, self.unit))

    def said(self, value: float) -> str:
        return f"{self.spelt(value)} {self.unit}".rstrip()

    @property
    def takes_ratios(self) -> bool:
        """Whether a ratio to the baseline is more meaningful than the value."""
        return not self.relative and self.name not in RATIOS_ALREADY and self.better != NEITHER

    @property
    def as_ratio(self) -> TradeoffAxis:
        """The axis with values divided by the baseline's, or the same where that means less."""
        return replace(self, unit="", divided=True) if self.takes_ratios else self

    @property
    def is_ratio(self) -> bool:
        """Whether published results, given as ratios to their own baselines, can be shown on it."""
        return self.divided or self.name in RATIOS_ALREADY

    def figure(self, point: Point) -> Estimate | None:
        """Value of ``point``, with its interval: a ratio's is the point's divided by the baseline's value."""
        if self.knob:
            value = None if point.setting is None else knob_value(point.setting, self.technique, self.knob)
            return None if value is None else Estimate(value, value, value, 1, 1)
        found = point.figures.get(self.name)
        if point.published:
            return found if self.is_ratio else None
        if found is None or not self.divided:
            return found
        other = point.baseline.get(self.name)
        if other is None or other.value <= 0.0:
            return None
        low, high = found.low / other.value, found.high / other.value
        return Estimate(found.value / other.value, low, high, found.n, found.clusters)

    def floor(self, point: Point) -> Estimate | None:
        """The judge's score of the reference speech for ``point``, if this axis shows it."""
        return None if self.divided else point.floors.get(self.name)

    def why_not(self, point: Point) -> str:
        """Why ``point`` has no value here: the rest of a sentence after "not shown:"."""
        if self.knob:
            return f"the setting has no {self.title}"
        if point.kind == PUBLISHED:
            return f"no paper gives {self.title} as a ratio to a baseline"
        if point.kind == SERVER and self.name not in point.figures:
            return f"{self.title} of a server is not measured, or its replies were not judged"
        found = point.figures.get(self.name)
        if found is not None and not self.divided:
            return f"{self.title} is not a number"
        if found is not None and self.name not in point.baseline:
            return f"no baseline with {self.title} to divide by"
        if found is not None:
            return f"{self.title} of the baseline is 0, so there is no ratio"
        if self.name.startswith(LISTENING):
            return f"no listening test gave the setting {self.title.removesuffix(_BY_EAR)}"
        if point.kind == TAKE:
            if self.studied:
                return f"only studies measure {self.title}"
            if self.of_runs:
                return f"the take was run once: repeat it for {self.title}"
            if self.judged:
                return f"{self.title} of the take was not judged"
            return f"{self.title} was not measured: no baseline take from the same noise"
        if not point.finished:
            return "no take is finished yet"
        if self.judged:
            return f"{self.title} was not judged in the study; put its judge into the study’s file"
        return f"{self.title} could not be measured for this model"


_METHODS = {
    "mushra": ("MUSHRA", "Mean rating, 0 to 100, of the lab's listeners who passed post-screening.", HIGHER, "of 100"),
    "abx": (
        "ABX, right answers",
        "Share of right answers against the unaccelerated output; 50 % means no audible difference.",
        LOWER,
        "%",
    ),
    "ccr": ("CMOS", "Mean vote against the unaccelerated output, -3 to 3, by the lab's listeners.", HIGHER, ""),
    "preference": ("Preference", "Mean preference over the unaccelerated output, -1 to 1.", HIGHER, ""),
    "naturalness_mos": ("MOS, naturalness", "Mean opinion of the lab's listeners, 1 to 5 (ITU-T P.800).", HIGHER, ""),
    "similarity_mos": (
        "MOS, similarity",
        "Mean opinion of the lab's listeners, 1 to 5, on how much like the voice's recording it sounds.",
        HIGHER,
        "",
    ),
}


AXES: tuple[TradeoffAxis, ...] = (
    *(
        TradeoffAxis(*(each.name, each.title, each.definition, each.better, each.unit, each.relative), *of)
        for each in METRICS
        for of in [(each.of is None, bool(each.judge), each.of_runs)]
    ),
    *(
        TradeoffAxis(LISTENING + method, title + _BY_EAR, definition, better, unit)
        for method, (title, definition, better, unit) in _METHODS.items()
    ),
)


def _of_knob(technique: str, knob: Knob) -> TradeoffAxis:
    title = f"{technique_title(technique)}: {knob.title.lower()}" if technique else knob.title
    name, title = f"knob:{technique}.{knob.name}", f"{title} {knob.symbol}".rstrip()
    return TradeoffAxis(name, title, knob.meaning, NEITHER, knob.unit, technique=technique, knob=knob.name)


_NUMBERS = (
    *((each.name, knob) for each in techniques() for knob in each.knobs if isinstance(knob, Number)),
    *(("", knob) for each in catalogue.models() for knob in each.options if isinstance(knob, Number)),
)
KNOB_AXES = tuple({(owner, knob.name): _of_knob(owner, knob) for owner, knob in _NUMBERS}.values())
"""Axes of settings: knobs of techniques, then options of models."""


def knob_value(setting: Setting, technique: str, knob: str) -> float | None:
    """Numeric value of a knob or option in ``setting``; ``None`` if it has none."""
    used = setting.technique(technique)
    value = (setting.options if not technique else used.knobs if used is not None else {}).get(knob)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def varied(points: Iterable[Point]) -> tuple[TradeoffAxis, ...]:
    """The knobs with several values among ``points``."""
    seen: dict[tuple[str, str], set[object]] = defaultdict(set)
    for setting in {one.candidate: one.setting for one in points if one.setting is not None}.values():
        for owner, knobs in (("", setting.options), *((one.technique, one.knobs) for one in setting.techniques)):
            for name, value in knobs.items():
                seen[owner, name].add(value)
    return tuple(one for one in KNOB_AXES if len(seen.get((one.technique, one.knob), ())) > 1)


def axis(name: str) -> TradeoffAxis:
    """The axis called ``name``. Raises :class:`StopIteration` if there is none."""
    return next(one for one in (*AXES, *KNOB_AXES) if one.name == name)


def figure_text(one: TradeoffAxis, figure: Estimate) -> str:
    """A figure with unit, interval and number of takes, such as ``2.05 times (1.98 to 2.12; n = 4)``."""
    text = one.said(figure.value)
    if one.knob:
        return text
    if not figure.n:
        return f"{general(per_one(one.unit) * figure.value)} {one.unit}".rstrip() + " (published, no interval)"
    over = f", {figure.over}" if figure.over else ""
    if figure.n == 1:
        return f"{text} (one take{over})"
    if not figure.spreads:
        return f"{text} (n = {figure.n}{over})"
    return f"{text} (95 %: {one.spelt(figure.low)} to {one.spelt(figure.high)}; n = {figure.n})"
