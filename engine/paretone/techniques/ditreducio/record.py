"""Record of a calibration, and the tables derived from it at other thresholds.

Acceptance is sequential: a trial's error was measured with every earlier decision in force. So a table at another
threshold is *exact* only while all its decisions are the recorded ones. From the first different decision on, the
recorded errors are those of a neighbouring path: the table is then a *prediction*, which only a calibration at that
threshold can confirm. Predict from a calibration at a small threshold: it rejects most candidates, hence measures both
errors of almost every cell.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean, median
from typing import ClassVar

import numpy as np

from paretone.measure.estimates import PASSES, Margins, margin
from paretone.models.base import Utterance
from paretone.sampling.actions import SkipAction
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.wording import counted, percent

PRE_CALIBRATION = "pre-calibration"
CALIBRATION = "calibration"
END = "end"
"""Phase of a calibration for the trajectory's end; a trial's error is that end's predicted distance so far."""


@dataclass(frozen=True)
class Trial:
    """One candidate tried on one cell, with the bound ``(layer + 1) / layers * threshold``."""

    phase: str
    step: int
    layer: int
    action: SkipAction
    error: float
    accepted: bool
    errors: tuple[float, ...] = ()
    """Error of each sentence, in order, if several were calibrated together; ``error`` is then their combination."""


@dataclass(frozen=True)
class Sentence:
    """A spoken sentence, with its voice's id. ``frames`` of new speech follow ``prompt_frames`` of the voice."""

    text: str
    voice: str
    frames: int = 0
    prompt_frames: int = 0


@dataclass(frozen=True)
class Derivation:
    """A table derived from a record at another threshold."""

    table: StrategyTable
    exact: bool
    """Whether a calibration at this threshold would certainly give this table."""
    differs_at: Trial | None = None
    """First recorded trial with another decision at this threshold, if not exact."""
    unmeasured: int = 0
    """Cells decided without a measured error for the branch-skipping candidate."""


@dataclass(frozen=True)
class CalibrationRecord:
    """A finished calibration: its knobs, trials and table."""

    table: StrategyTable
    knobs: Values
    cut: float
    """Diagonal similarity from which the check phase marked a cell."""
    trials: tuple[Trial, ...]
    similarities: np.ndarray = field(repr=False, compare=False)
    """(layers, steps) diagonal similarity of the check phase."""
    sentences: tuple[Sentence, ...] = ()
    combine: str = "worst"
    """Combination of several sentences' errors."""
    seed: int = 0
    created: str = ""
    machine: str = ""

    @property
    def threshold(self) -> float:
        return float(self.knobs["threshold"])

    @property
    def is_for_end(self) -> bool:
        """Whether it was calibrated for the end of the trajectory, with a budget instead of a threshold."""
        return self.knobs.get("objective") == "end"

    @property
    def marked(self) -> np.ndarray:
        """(layers, steps) bool: the cells marked in the check phase."""
        return self.similarities >= self.cut

    def normalised_errors(self, action: SkipAction) -> np.ndarray:
        """Errors (layers, steps) of ``action`` divided by ``(layer + 1) / layers``, so that one threshold applies to
        all; NaN if not measured. The later phase wins if both tried a cell."""
        errors = np.full((self.table.layers, self.table.steps), np.nan)
        for trial in self.trials:
            if trial.action is action and trial.phase != END:
                errors[trial.layer, trial.step] = trial.error * self.table.layers / (trial.layer + 1)
        return errors

    def derive(self, threshold: float) -> Derivation:
        """Table at ``threshold``; see the module's docstring for when it is exact. Predictions assume that errors of
        skips at one step add up: a trial adds as much to the predicted error as it added to the recorded one. A trial
        that added nothing counts with its whole error. (Taking every error as measured predicts far too many skips.) A
        calibration for the end of the trajectory has no threshold: its table is the same at all."""
        if self.is_for_end:
            return Derivation(self.table, True)
        layers, steps = self.table.layers, self.table.steps
        rows = [[SkipAction.NONE] * steps for _ in range(layers)]
        differs_at = None
        decided: set[tuple[int, int]] = set()
        tried_last: dict[tuple[int, int], SkipAction] = {}
        pass_over_step = None
        recorded = predicted = 0.0
        for trial in self.trials:
            cell = trial.layer, trial.step
            tried_last[cell] = trial.action
            if pass_over_step != (trial.phase, trial.step):
                pass_over_step, recorded, predicted = (trial.phase, trial.step), 0.0, 0.0
            added = trial.error - recorded if trial.error > recorded else trial.error
            error = trial.error if differs_at is None else predicted + added
            if trial.accepted:
                recorded = trial.error
            if cell in decided:
                continue
            accepted = error < (trial.layer + 1) / layers * threshold
            if accepted != trial.accepted and differs_at is None:
                differs_at = trial
            if accepted:
                rows[trial.layer][trial.step] = trial.action
                decided.add(cell)
                predicted = error
        unmeasured = sum(cell not in decided and action is SkipAction.TS for cell, action in tried_last.items())
        how = "calibrated" if differs_at is None else "predicted"
        words = origin(how, threshold, len(self.sentences), self.combine)
        table = replace(self.table, actions=tuple(map(tuple, rows)), origin=words)
        return Derivation(table, differs_at is None, differs_at, unmeasured)

    @property
    def exact_interval(self) -> tuple[float, float]:
        """Thresholds ``low < δ <= high`` for which :meth:`derive` is exact."""
        if self.is_for_end:
            return 0.0, float("inf")
        bounds = [(trial.error * self.table.layers / (trial.layer + 1), trial.accepted) for trial in self.trials]
        low = max((bound for bound, accepted in bounds if accepted), default=0.0)
        high = min((bound for bound, accepted in bounds if not accepted), default=float("inf"))
        return low, high

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that identify this calibration."""
        data = [
            self.table.fingerprint,
            dict(self.knobs),
            [(one.text, one.voice) for one in self.sentences],
            self.combine,
            self.seed,
            self.created,
        ]
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def origin(how: str, threshold: float, sentences: int, combine: str) -> str:
    words = f"{how} at threshold {threshold:g}"
    return words if sentences < 2 else f"{words} on the {combine} error of {sentences} sentences"


DISTANCE_TOLERANCE = 1.25
"""A table transfers well if the log-mel distance of other sentences is at most this factor times that of its own …"""
EXCEEDING_TOLERANCE = 0.10
"""… and their share of skips beyond their bounds (0 to 1) is at most this much higher."""
OTHER_LENGTH = 1.5
"""Sentences count as longer (or shorter) than the table's own from this factor on."""
MANY_EXCEEDING = 0.5
"""From this share of skips beyond their bounds, equal transfer is not called good."""


@dataclass(frozen=True)
class SentenceTransfer:
    """One sentence under the table, compared with its full run from the same noise."""

    sentence: Sentence
    velocity_errors: tuple[float, ...]
    """Mean absolute difference of the velocities at every step, in units of the model's output."""
    distance: float
    """Log-mel distance of the new speech, in natural-log units."""
    exceeding: float
    """Share of the table's skips whose error, measured here, exceeds the bound of their layer; 0 to 1."""

    @property
    def velocity_error(self) -> float:
        return fmean(self.velocity_errors)


@dataclass(frozen=True)
class TransferReport:
    """A table on the sentences it was ``calibrated`` on, if known, and on ``unseen`` ones. A table's own sentences are
    the reference, since they have skips beyond their bounds as well: a calibration compares with the step under the
    skips of pre-calibration, this measurement with the step without skips."""

    table: str
    """Fingerprint of the table."""
    threshold: float
    metric: str
    calibrated: tuple[SentenceTransfer, ...]
    unseen: tuple[SentenceTransfer, ...]

    @property
    def groups(self) -> dict[str, tuple[SentenceTransfer, ...]]:
        """Unseen sentences by voice, and those longer or shorter than the table's own."""
        voices = dict.fromkeys(one.sentence.voice for one in self.unseen)
        groups = {f"voice {name}": [one for one in self.unseen if one.sentence.voice == name] for name in voices}
        if self.calibrated:
            lengths = [one.sentence.frames for one in self.calibrated]
            longer, shorter = max(lengths) * OTHER_LENGTH, min(lengths) / OTHER_LENGTH
            groups["longer sentences"] = [one for one in self.unseen if one.sentence.frames >= longer]
            groups["shorter sentences"] = [one for one in self.unseen if one.sentence.frames <= shorter]
        return {name: tuple(rows) for name, rows in groups.items() if rows}

    @property
    def ill_served(self) -> tuple[str, ...]:
        """Groups with clearly worse results than the table's own sentences; none if those are unknown."""
        if not self.calibrated:
            return ()
        distance, exceeding = _figures(self.calibrated)
        return tuple(
            name
            for name, rows in self.groups.items()
            if _figures(rows)[0] > distance * DISTANCE_TOLERANCE or _figures(rows)[1] > exceeding + EXCEEDING_TOLERANCE
        )

    @property
    def judgement(self) -> Margins:
        """Whether all unseen sentences together do as well as the table's own, by 95 % intervals over sentences."""
        distance, exceeding = _figures(self.calibrated)
        distances = np.array([one.distance for one in self.unseen])
        shares = np.array([one.exceeding for one in self.unseen])
        own = np.full(len(distances), distance)
        far = margin(distances, own, DISTANCE_TOLERANCE, above=True, share=True, statistic="median")
        beyond = margin(shares, np.full(len(shares), exceeding), EXCEEDING_TOLERANCE, above=True)
        return Margins({"log-mel distance": far, "skips beyond their bounds": beyond})

    @property
    def well(self) -> bool:
        """Whether new text does as well as the table's own, with most skips within their bounds."""
        passes = bool(self.calibrated) and not self.advised and self.judgement.verdict == PASSES
        return passes and _figures(self.unseen)[1] < MANY_EXCEEDING

    @property
    def advised(self) -> bool:
        """Whether to advise a calibration on several sentences, some of them from :attr:`ill_served`."""
        return bool(self.ill_served)

    @property
    def verdict(self) -> str:
        if not self.calibrated:
            distance, exceeding = _figures(self.unseen)
            return (
                f"On {counted(len(self.unseen), 'sentence', 'sentences')}: log-mel distance {distance:.3f}, "
                f"{percent(exceeding)} of the skips beyond their bounds. To compare, measure the sentences that the "
                "table was calibrated on, too."
            )
        if not self.advised:
            figures = self._next_to_own(self.unseen)
            if self.judgement.verdict != PASSES:
                return f"Transfer is {self.judgement.words} ({figures})."
            if not self.well:
                return (
                    "The table serves new text as it serves its own, but most skips are beyond their bounds: "
                    f"{figures}. Compare by ear before you use it."
                )
            return f"The table transfers well: {figures}."
        cases = "; ".join(f"{name}: {self._next_to_own(self.groups[name])}" for name in self.ill_served)
        return (
            f"The table serves some sentences worse than its own ({cases}). Calibrating on several sentences, "
            "including such ones, is advised."
        )

    def _next_to_own(self, rows: Sequence[SentenceTransfer]) -> str:
        """Figures of ``rows``, each with that of the table's own sentences."""
        (distance, exceeding), (own_distance, own_exceeding) = _figures(rows), _figures(self.calibrated)
        return (
            f"log-mel distance {distance:.3f} on new text, {own_distance:.3f} on its own; {percent(exceeding)} of the "
            f"skips beyond their bounds, {percent(own_exceeding)} on its own"
        )

    def to_json(self) -> dict:
        own = {"ill_served": list(self.ill_served), "advised": self.advised, "well": self.well, "verdict": self.verdict}
        return {**asdict(self), **own}


def _figures(rows: Sequence[SentenceTransfer]) -> tuple[float, float]:
    """Median log-mel distance, and the mean share of skips beyond their bounds."""
    return median(one.distance for one in rows), fmean(one.exceeding for one in rows)


@dataclass(frozen=True)
class CalibrationRequest:
    """Request to calibrate on all ``utterances`` together, with DiTReducio's knobs in ``setting``. ``combine`` is one
    of :data:`paretone.techniques.ditreducio.COMBINATIONS`. Reports are :class:`Trial` and :class:`Similarities`; the
    result is :class:`Calibrated`."""

    activity: ClassVar[str] = "calibrating"

    utterances: tuple[Utterance, ...]
    setting: Setting
    combine: str = "worst"


@dataclass(frozen=True)
class Similarities:
    """The check phase's diagonal similarities so far: (layers, steps) float, NaN where not yet measured."""

    values: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class Calibrated:
    record: CalibrationRecord
    operations: OperationCounts
    """Operations of one backbone evaluation of the first sentence."""
    seconds: float


@dataclass(frozen=True)
class TransferRequest:
    """Request to measure ``table``, ``calibrated`` on these utterances if known, on ``unseen`` ones. Errors are
    compared with the threshold of DiTReducio in ``setting``. The result is :class:`TransferReport`."""

    activity: ClassVar[str] = "measuring the transfer"

    table: StrategyTable
    calibrated: tuple[Utterance, ...]
    unseen: tuple[Utterance, ...]
    setting: Setting
