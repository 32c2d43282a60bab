"""Result of a roofline measurement. Torch-free."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from paretone.measure.roofline.ceilings import BOUNDS, COMPUTE, MEMORY, Ceilings
from paretone.measure.roofline.counts import Work
from paretone.setting.setting import Setting
from paretone.wording import comma_separated, comments

EMBEDDING, PROJECTIONS, ATTENTION, FEED_FORWARD = "embedding", "projections", "attention", "feed_forward"
JOINS, FRAMES = "joins", "frames"
NORMS, NETWORK, HEAD, SAMPLING, DECODER = "norms", "network", "head", "sampling", "decoder"
CONDITIONING, REST = "conditioning", "rest"
TITLES = {
    EMBEDDING: "Embedding",
    JOINS: "Skip connections",
    PROJECTIONS: "q, k, v, o projections",
    ATTENTION: "Attention",
    FEED_FORWARD: "Feed-forward",
    NORMS: "Norms, residuals",
    NETWORK: "Whole network",
    HEAD: "Head",
    SAMPLING: "Sampling",
    FRAMES: "Codes within frames",
    DECODER: "Decoder",
    CONDITIONING: "Conditioning",
    REST: "Rest",
}
"""Component titles, in the order of a forward pass."""
MEANINGS = {
    EMBEDDING: "Makes the first layer's input",
    JOINS: "Products that join a late layer's input with that of an early one, in E2-TTS",
    PROJECTIONS: "Projections to queries, keys and values, operations per head, and the output projection",
    ATTENTION: "Both products of attention and the softmax between them",
    FEED_FORWARD: "The products of the feed-forward modules and the activation between them",
    NORMS: "Norms of the layers, gates and residual additions",
    NETWORK: "A flow's network whose layers are not transformers', with guidance and the solver's step",
    HEAD: "The last norm and the products to scores or velocities",
    SAMPLING: "Guidance, and from scores or velocities to the next tokens or state",
    FRAMES: "The network that completes each token to a frame of several codes, with its sampling",
    DECODER: "From tokens or mel to audio",
    CONDITIONING: "Text, voice and schedule, once per utterance",
    REST: "Time of the whole beyond its components: calls and all between them; operations not counted. Negative if "
    "the whole is faster than its components one by one, because it works in place and its data stay in the caches",
}
WITHIN_NOISE = "within noise"
"""Label of a rest that is not distinguishable from zero."""
SAVED_TOGETHER = "saved together"
"""Label of a negative rest: the whole works in place, in the caches or compiled, unlike single components."""
_UNCERTAIN = 0.05
"""Tolerance of ratios of measured time to floor: both are medians on a machine with other load."""
_FASTER = {
    MEMORY: "the floor is of copies in main memory, and data in the caches, or that are only read, are faster",
    COMPUTE: "the arithmetic ran faster than the matrix product that its ceiling was measured with",
}
"""Reasons why a component may beat its floor, by the floor's kind."""
COLUMNS = tuple(
    "phase component precision calls operations_per_call bytes_per_call launches_per_call floor_seconds launch_seconds "
    "measured_seconds ratio bound note".split()
)
"""Columns of the CSV table; seconds are totals over all calls."""


@dataclass(frozen=True)
class Component:
    """One part of a phase. Work, launches and seconds are per call."""

    name: str
    calls: float
    """Calls in the whole utterance; a fraction if parts of calls are skipped."""
    work: Work
    precision: str = "float32"
    launches: float = 0.0
    seconds: float | None = None
    """Measured seconds; ``None`` if only counted."""
    note: str = ""

    @property
    def title(self) -> str:
        return TITLES[self.name]

    @property
    def total_seconds(self) -> float | None:
        return None if self.seconds is None else self.calls * self.seconds

    def floor(self, ceilings: Ceilings) -> float:
        """Lower bound in seconds for all calls."""
        return self.calls * ceilings.floor(self.work, self.precision)

    def ratio(self, ceilings: Ceilings) -> float | None:
        """Measured seconds over the lower bound; ``None`` if one is missing."""
        floor = ceilings.floor(self.work, self.precision)
        return None if self.seconds is None or floor <= 0 else self.seconds / floor

    def at_floor(self, ceilings: Ceilings) -> bool:
        """Whether the measured time equals the floor within the tolerance."""
        return abs((self.ratio(ceilings) or 0.0) - 1.0) <= _UNCERTAIN

    def why_below_floor(self, ceilings: Ceilings) -> str:
        """Reason for a time below the floor by more than the tolerance, in words; ``""`` otherwise."""
        ratio = self.ratio(ceilings)
        if ratio is None or ratio >= 1.0 - _UNCERTAIN:
            return ""
        arithmetic, traffic = ceilings.seconds(self.work, self.precision)
        return _FASTER[COMPUTE if arithmetic >= traffic else MEMORY]

    def bound(self, ceilings: Ceilings, graphed: bool = False) -> str:
        """One of :data:`paretone.measure.roofline.ceilings.BOUNDS`; ``""`` if nothing was counted."""
        counted = self.work.operations or self.work.bytes
        return ceilings.bound(self.work, self.precision, self.launches, graphed) if counted else ""


@dataclass(frozen=True)
class Phase:
    """A part of a synthesis that runs ``forwards`` times, such as the evaluations, or a decoding step."""

    name: str
    title: str
    forwards: float
    components: tuple[Component, ...]
    whole_seconds: float | None = None
    """Measured seconds of one forward as the setting runs it; ``None`` if there is only one component."""
    launches: float = 0.0
    """Launches per forward."""
    layer_launches: tuple[int, ...] = ()
    """Launches of each layer per forward."""
    shape: str = ""
    """Size of one forward, in words."""
    graphed: bool = False
    """Whether it runs as a CUDA graph."""
    rest_range: tuple[float, float] | None = None
    """95 % interval of a forward's median rest, compared within rounds; ``None`` for too few rounds."""

    @property
    def launches_by_layer(self) -> str:
        """Launches by layer in words, such as ``14 per layer`` or ``12, 6 × 14, 15 by layer``, or ``""``."""
        if len(set(self.layer_launches)) <= 1:
            return f"{self.layer_launches[0]} per layer" if self.layer_launches else ""
        runs = ((count, len(list(same))) for count, same in itertools.groupby(self.layer_launches))
        return ", ".join(f"{layers} × {count}" if layers > 1 else str(count) for count, layers in runs) + " by layer"

    @property
    def seconds(self) -> float:
        """Measured seconds of all forwards; the components' sum if the whole was not measured."""
        if self.whole_seconds is not None:
            return self.forwards * self.whole_seconds
        return sum(one.total_seconds or 0.0 for one in self.components)

    @property
    def rest(self) -> Component | None:
        """Time of the whole beyond its components; negative if running them together is faster. Its note has the
        interval and whether it is beyond noise."""
        of_components = [one.total_seconds for one in self.components if one.total_seconds is not None]
        if self.whole_seconds is None or len(of_components) < len(self.components):
            return None
        beyond = self.seconds - sum(of_components)
        launches = self.launches - sum(one.launches * one.calls for one in self.components) / self.forwards
        note = ""
        if self.rest_range is not None:
            low, high = (1e3 * self.forwards * one for one in self.rest_range)
            note = f"{self._verdict or 'beyond noise'}: between {low:.3g} and {high:.3g} ms (95 % interval)"
        return Component(REST, self.forwards, Work(), "", max(0.0, launches), beyond / self.forwards, note)

    @property
    def rest_is_noise(self) -> bool:
        return self._verdict == WITHIN_NOISE

    @property
    def _verdict(self) -> str:
        """Verdict on the rest: :data:`WITHIN_NOISE`, :data:`SAVED_TOGETHER`, or ``""`` if neither or unknown."""
        low, high = self.rest_range or (1.0, 1.0)
        return WITHIN_NOISE if low <= 0 <= high else SAVED_TOGETHER if high < 0 else ""

    def bound(self, one: Component, ceilings: Ceilings) -> str:
        """Bound of one of :meth:`rows` in words: one of :data:`paretone.measure.roofline.ceilings.BOUNDS`,
        :data:`WITHIN_NOISE`, :data:`SAVED_TOGETHER`, or ``""`` if nothing was counted."""
        if one.name != REST or self.rest_range is None:
            return one.bound(ceilings, self.graphed)
        return self._verdict

    def rows(self) -> tuple[Component, ...]:
        rest = self.rest
        return self.components if rest is None else (*self.components, rest)


@dataclass(frozen=True)
class RooflineReport:
    model: str
    title: str
    setting: Setting
    ceilings: Ceilings
    phases: tuple[Phase, ...]
    text: str = ""
    voice: str = ""
    audio_seconds: float = 0.0
    clock_overhead: float = 0.0
    """Seconds of a clock reading around a part; negligible, as parts are repeated between readings."""
    notes: tuple[str, ...] = ()
    machine: str = ""
    created: str = ""
    """UTC, ISO 8601."""
    seconds: float = field(default=0.0, compare=False)
    """Wall seconds of the measurement."""

    @property
    def measured(self) -> float:
        """Seconds of the whole utterance by the ceilings' clock."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def total(self) -> float:
        """Seconds measured, or the floor of a report on paper."""
        return self.measured or self.floor

    @property
    def floor(self) -> float:
        """Lower bound in seconds of the whole utterance."""
        return sum(one.floor(self.ceilings) for _, one in self.components())

    @property
    def launches(self) -> float:
        """Kernel launches of the whole utterance; on CPUs, operator calls."""
        return sum(phase.launches * phase.forwards for phase in self.phases)

    @property
    def rest_is_noise(self) -> bool:
        rests = [phase for phase in self.phases if phase.rest is not None]
        return bool(rests) and all(phase.rest_is_noise for phase in rests)

    def components(self) -> Iterator[tuple[Phase, Component]]:
        """All rows of the table: every phase's components and rest."""
        for phase in self.phases:
            for one in phase.rows():
                yield phase, one

    def by_component(self) -> Mapping[str, float]:
        """Measured seconds by component over all phases, on paper their floors, in the order of :data:`TITLES`."""
        found: dict[str, float] = {}
        for _, one in self.components():
            seconds = one.floor(self.ceilings) if one.total_seconds is None else one.total_seconds
            found[one.name] = found.get(one.name, 0.0) + seconds
        return {name: found[name] for name in TITLES if name in found}

    def lines(self) -> Iterator[dict[str, object]]:
        """Every row by :data:`COLUMNS`; ``None`` if not measured or without a floor."""
        ceilings = self.ceilings
        for phase, one in self.components():
            cells = (
                *(phase.name, one.name, one.precision, one.calls, one.work.operations, one.work.bytes, one.launches),
                one.floor(ceilings),
                one.calls * ceilings.launching(one.launches, phase.graphed),
                one.total_seconds,
                one.ratio(ceilings),
                one.bound(ceilings, phase.graphed),
                one.note,
            )
            yield dict(zip(COLUMNS, cells, strict=True))

    def to_csv(self) -> str:
        """The table after header lines that begin with ``#``."""
        on = {"device": self.ceilings.device, "clock": self.ceilings.clock}
        own = {name: getattr(self, name) for name in ("text", "voice", "machine", "created")}
        head = {"model": self.title, "setting": self.setting.fingerprint, **on, **own}
        rows = ([line.get(name) for name in COLUMNS] for line in self.lines())
        return comments(head) + comma_separated([COLUMNS, *rows])

    def to_json(self) -> dict:
        return {
            "model": self.model,
            "setting": self.setting.to_json(),
            **{name: getattr(self, name) for name in ("text", "voice", "audio_seconds")},
            "ceilings": self.ceilings.to_json(),
            "phases": [
                {name: getattr(phase, name) for name in ("name", "title", "shape", "forwards")}
                | {"forward_seconds": phase.whole_seconds, "launches_per_forward": phase.launches}
                | {"launches_per_layer": list(phase.layer_launches), "graphed": phase.graphed}
                | {"rest_seconds_range": None if phase.rest_range is None else list(phase.rest_range)}
                for phase in self.phases
            ],
            "components": list(self.lines()),
            "measured_seconds": self.measured,
            "floor_seconds": self.floor,
            "launches": self.launches,
            "clock_overhead_seconds": self.clock_overhead,
            "notes": list(self.notes),
            **{name: getattr(self, name) for name in ("machine", "created", "seconds")},
        }


def on_paper(report: RooflineReport, card: Ceilings) -> RooflineReport:
    """``report`` under the ceilings of a card: the same work and launches, and no measured time."""
    untimed = (replace(one, whole_seconds=None, rest_range=None) for one in report.phases)
    phases = tuple(
        replace(phase, components=tuple(replace(one, seconds=None) for one in phase.components)) for phase in untimed
    )
    note = (
        f"On paper: the ceilings are those of {card.device} ({card.stated}), and nothing was measured there. Launches "
        f"were counted on {report.machine}; precisions are the setting's."
    )
    return replace(report, ceilings=card, phases=phases, clock_overhead=0.0, notes=(*report.notes, note))


def shares(report: RooflineReport) -> Mapping[str, float]:
    """Share of the measured seconds by bound, or ``"uncounted"``. A rest within noise or below zero counts as zero."""
    found = dict.fromkeys((*BOUNDS, "uncounted"), 0.0)
    for phase, one in report.components():
        if one.name == REST and (phase.rest_is_noise or (one.seconds or 0.0) < 0):
            continue
        found[one.bound(report.ceilings, phase.graphed) or "uncounted"] += one.total_seconds or 0.0
    total = sum(found.values())
    return {name: value / total if total else 0.0 for name, value in found.items()}
