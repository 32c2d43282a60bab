"""DiTReducio and its rivals at equal shares of computed operations: fidelity, word error rate, measured speed-up.

Compared on the bundled model, from the same noise: DiTReducio with reuse (the paper) and with forecasts (ours), as
published and calibrated for the end of the trajectory (ours), and rivals. The knob of each is searched on one other
sentence until the share is met; the table has the share met on the test sentences, and how much of the saving the clock
shows.

A default run compares at half of the operations alone and hears as many sentences as fit into five minutes on two
cores. For figures to quote: ``--targets 0.7 0.5 0.35 --minutes 60``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from paretone.bench import budget, bundled
from paretone.bench.budget import Budget, Turns, heard_in_turns
from paretone.bench.report import Report
from paretone.commands.arguments import finite
from paretone.errors import PlainError
from paretone.measure.estimates import bootstrap, mean_ratio
from paretone.measure.timing import Interval, PairedTimes
from paretone.measure.verdicts import VoiceVerdict, Way, counted_errors, each_distance, judged_means
from paretone.models.base import Utterance, Voice
from paretone.models.catalogue import entry
from paretone.models.families.flow import FlowSpeech
from paretone.models.loading import load_vocoder
from paretone.observer import Observer
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted, synthesise
from paretone.techniques import resolve
from paretone.techniques.ditreducio import END, TECHNIQUE
from paretone.techniques.ditreducio.preparation import calibrate_model
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.wording import Share, percent

NAME = "rivals"
COUNTED = 0.5
"""Share at which the headline compares."""
TIMED = 0.3
"""Share of the remaining budget for timed rounds."""
TOLERANCE = 0.06
"""Allowed deviation of a share from its target; schedules move in whole steps."""
DRAWS = 4000
FIRST_THRESHOLD = 0.05
TABLES = {"reuse": "DiTReducio", "forecast": "DiTReducio, forecast"}
FOR_END = "DiTReducio for the end (ours)"
OWN = (*TABLES.values(), FOR_END)
"""All variants of DiTReducio, which are not rivals of one another."""
DEFINITION = (
    "Log-mel distance to the baseline of DiTReducio as published over that of its best rival, both computing about "
    "half of the baseline's operations; mean distances over the same sentences in all voices, from the same noise. "
    "Above 1 the rival is closer to the baseline. The interval is a bootstrap over sentences."
)


@dataclass(frozen=True)
class Contender:
    technique: str
    target: float
    knob: str
    way: Way
    share: float = float("nan")
    """Computed operations of the timed sentence over the baseline's."""

    def realised(self, times: PairedTimes) -> float | None:
        """Share of the saved operations that is saved in time, median over the rounds; ``None`` without savings."""
        if not self.share < 1:
            return None
        saved = 1 - 1 / np.array(times.ratios(self.way.title))
        return Share(np.median(saved) / (1 - self.share))


@dataclass(frozen=True)
class Rival:
    """A technique whose share depends on one knob."""

    technique: str
    knob: str
    title: str
    others: Values = NO_VALUES
    """Values of its other knobs, if not the defaults."""
    highest: float = 4.0
    """Upper end of the search, from 0."""

    def setting(self, baseline: Setting, value: float) -> Setting:
        return baseline.with_technique(UsedTechnique(self.technique, self.others.replace(**{self.knob: value})))


# The cache of serving engines at its limits: with its defaults too few steps are reused for a share of one half.
_FURTHEST = Values(max_warmup_steps=2, max_continuous_cached_steps=-1)
_EXTRAPOLATED = _FURTHEST.replace(taylorseer_order=1)
SEARCHED = (
    Rival("error_curve", "threshold", "error-curve cache"),
    Rival("first_block", "threshold", "first-block cache"),
    Rival("dual_block_cache", "residual_diff_threshold", "dual block cache", _FURTHEST, 1.0),
    Rival("dual_block_cache", "residual_diff_threshold", "dual block cache, Taylor", _EXTRAPOLATED, 1.0),
)
GUIDED_FIRST = Rival("guidance_interval", "steps", "guidance on the first k steps")
"""Its number of steps determines the share."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    bundled.add_arguments(parser, steps=12, rounds=5)
    bundled.add_listening_arguments(parser, sentences=6, least=1)
    parser.add_argument(
        "--targets",
        type=finite,
        nargs="+",
        default=[COUNTED],
        help=f"shares of computed operations; the headline is of {COUNTED:g} (default: {COUNTED:g})",
    )
    budget.add_arguments(parser)


def run(arguments: argparse.Namespace) -> Report:
    """Search every knob, time all entrants in the same rounds, then run the judge."""
    within = Budget(arguments.minutes, arguments.rounds)
    model = bundled.loaded_flow(arguments)
    baseline = bundled.setting(arguments)
    plain = Way(f"baseline, {arguments.steps} steps", baseline)
    entrants = Entrants(model, baseline, arguments.text, bundled.speaker(arguments), arguments.targets)
    contenders = list(entrants.all())
    ways = [plain, *(one.way for one in contenders)]
    times = bundled.timed_sampling(model, ways, arguments, budget=within, share=TIMED)
    vocoder = load_vocoder(entry(arguments.model).vocoder_folder)
    sentences, voices = bundled.heard_sentences(arguments, [arguments.text]), bundled.heard_voices(arguments)
    heard = heard_in_turns(sentences, voices, vocoder, model, ways, Turns(within, least=1), bundled.say)
    reference = heard[plain.title]
    entered = {one.way.title for one in contenders}
    rows = [_row(title, said, reference, None) for title, said in heard.items() if title not in entered]
    distances = {}
    for one in contenders:
        said = heard[one.way.title]
        distances[one.way.title] = each_distance(reference, said)
        row = _row(one.technique, said, reference, one) | times.speed_up[one.way.title].columns()
        rows.append({**row, "realised share": one.realised(times)})
    rows.append({"technique": "A/A", "speed-up": times.same.median})
    shares = {one.way.title: _share(heard[one.way.title]) for one in contenders}
    for name in OWN:
        ratio = compared(contenders, shares, distances, name)
        if ratio is not None:
            rows.append({"technique": f"{name}, over its best rival", "target": COUNTED, "log-mel distance": ratio[1]})
    published = compared(contenders, shares, distances)
    if published is None:
        raise PlainError(f"No two techniques met a share of {COUNTED:g}; give other --steps or --targets.")
    low, middle, high = published
    count = len(reference[0].syntheses)
    definition = f"{DEFINITION} {budget.heard(count, len(sentences), f'in each of {len(voices)} voices')}"
    return Report.of(NAME, Interval(middle, low, high), definition, rows)


def compared(
    contenders: Sequence[Contender],
    shares: Mapping[str, float],
    distances: Mapping[str, np.ndarray],
    own: str = TABLES["reuse"],
) -> tuple[float, float, float] | None:
    """Mean distance of one of :data:`OWN` over that of the best rival at :data:`COUNTED`, between the ends of its
    interval; ``None`` if it or all rivals missed that share."""
    found = {
        one.technique: distances[one.way.title]
        for one in contenders
        if one.target == COUNTED and abs(shares[one.way.title] - COUNTED) <= TOLERANCE
    }
    rivals = [distance for name, distance in found.items() if name not in OWN]
    if own not in found or not rivals:
        return None
    value, low, high = bootstrap(mean_ratio, found[own], min(rivals, key=np.mean), draws=DRAWS)
    return low, value, high


# --- Entrants ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Entrants:
    """Makes the contenders, on the sentence of the searches."""

    model: FlowSpeech
    baseline: Setting
    text: str
    voice: Voice
    targets: Sequence[float]

    def all(self) -> Iterator[Contender]:
        """All techniques at all targets within their range."""
        for temporal in TABLES:
            yield from self._tables(temporal)
        for target in self.targets:
            bundled.say(f"{FOR_END}: calibrating for {target:g} of the operations …")
            used = UsedTechnique(TECHNIQUE.name, Values(objective=END, operations=100 * target))
            yield self._with_table(FOR_END, target, percent(target), used, self._calibrated(used).table)
        for searched, target in product(SEARCHED, self.targets):
            yield self._searched(searched, target)
        settings = [GUIDED_FIRST.setting(self.baseline, steps) for steps in range(1, self.baseline.options["steps"])]
        shares = [resolve(self.model.info, one).ops_ratio(self._operations) for one in settings]
        for target in self.targets:
            nearest = int(np.argmin(np.abs(np.array(shares) - target)))
            if abs(shares[nearest] - target) <= TOLERANCE:
                way = Way(f"guidance first at {target:g}", settings[nearest])
                yield Contender(GUIDED_FIRST.title, target, f"k = {nearest + 1}", way, shares[nearest])

    @cached_property
    def _operations(self) -> OperationCounts:
        return self.model.operations(scripted(self.model, self.text, self.voice, self.baseline, prepared=False))

    def _calibrated(self, used: UsedTechnique) -> CalibrationRecord:
        utterance = Utterance(self.text, self.voice)
        return calibrate_model(self.model, [utterance], self.baseline.with_technique(used), Observer())

    def _with_table(self, name: str, target: float, knob: str, used: UsedTechnique, table: StrategyTable) -> Contender:
        setting = self.baseline.with_technique(replace(used, artefact=table.fingerprint))
        way = Way(f"{name} at {target:g}", setting, (table,))
        return Contender(name, target, knob, way, table.ops_ratio(self._operations))

    def _tables(self, temporal: str) -> Iterator[Contender]:
        """One table per target, each calibrated at the threshold that the last one predicts, adjusted by its record."""
        threshold, record = FIRST_THRESHOLD, None
        for target in sorted(self.targets, reverse=True):
            if record is not None:
                threshold = self._predicted(record, target)
            bundled.say(f"{TABLES[temporal]}: calibrating at threshold {threshold:.3g} …")
            used = UsedTechnique(TECHNIQUE.name, Values(threshold=round(threshold, 4), temporal=temporal))
            record = self._calibrated(used)
            moved = self._predicted(record, target)
            yield self._with_table(TABLES[temporal], target, f"δ = {moved:.3g}", used, record.derive(moved).table)

    def _predicted(self, record: CalibrationRecord, target: float) -> float:
        return _threshold_for(target, lambda one: record.derive(one).table.ops_ratio(self._operations))

    def _searched(self, rival: Rival, target: float) -> Contender:
        bundled.say(f"{rival.title}: searching the threshold for {target:g} …")
        shares: dict[float, float] = {}

        def share(threshold: float) -> float:
            setting = rival.setting(self.baseline, threshold)
            shares[threshold] = synthesise(self.model, self.text, self.voice, setting).measurements.ops_ratio
            return shares[threshold]

        threshold = _threshold_for(target, share, rival.highest, trials=8)
        way = Way(f"{rival.title} at {target:g}", rival.setting(self.baseline, threshold))
        return Contender(rival.title, target, f"{threshold:.3g}", way, shares[threshold])


def _threshold_for(target: float, share: Callable[[float], float], high: float = 2.0, trials: int = 20) -> float:
    """The threshold, along a bisection, whose share comes nearest to ``target``; shares fall with thresholds."""
    low, best, nearest = 0.0, high, float("inf")
    for _ in range(trials):
        middle = (low + high) / 2
        found = share(middle)
        if abs(found - target) < nearest:
            best, nearest = middle, abs(found - target)
        low, high = (middle, high) if found > target else (low, middle)
    return best


# --- Measured ---------------------------------------------------------------------------------------------------------
def _row(
    title: str, said: Sequence[VoiceVerdict], reference: Sequence[VoiceVerdict], contender: Contender | None
) -> dict[str, object]:
    row: dict[str, object] = {"technique": title}
    if contender is not None:
        row |= {
            "target": contender.target,
            "knob": contender.knob,
            "ops ratio": _share(said),
            "log-mel distance": float(each_distance(reference, said).mean()),
        }
    return {**row, "word error rate": counted_errors(said)["word error rate"], **judged_means(said)}


def _share(said: Sequence[VoiceVerdict]) -> float:
    return float(np.mean([take.measurements.ops_ratio for one in said for take in one.syntheses]))
