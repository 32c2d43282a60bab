"""DiTReducio's requests and results: calibration, transfer. Torch-free and picklable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import ClassVar

import numpy as np

from paretone.measure.estimates import PASSES, Judgement, margin
from paretone.models.base import Utterance
from paretone.sampling.operations import OperationCounts
from paretone.setting.setting import Setting
from paretone.techniques.ditreducio.record import CalibrationRecord, Sentence
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.wording import percent

DISTANCE_TOLERANCE = 1.25
"""A table transfers well to sentences if their log-mel distance is at most this times that of the sentences that it was
calibrated on …"""
EXCEEDING_TOLERANCE = 0.10
"""… and the share of skips beyond their bounds (0 to 1) is at most this above that of those sentences."""
OTHER_LENGTH = 1.5
"""Sentences are longer (or shorter) than the table's own from this factor on."""
MANY_EXCEEDING = 0.5
"""From this share of skips beyond their bounds on, serving others as well as its own is no praise of a table."""


@dataclass(frozen=True)
class SentenceTransfer:
    """One sentence under the table, compared with its full run from the same noise."""

    sentence: Sentence
    velocity_errors: tuple[float, ...]
    """Mean absolute difference of the velocities at every step, in units of the model's output."""
    distance: float
    """Log-mel distance of the new speech, in natural-log units."""
    exceeding: float
    """Share of the table's skips whose error, measured here, does not keep to the bound of their layer; 0 to 1."""

    @property
    def velocity_error(self) -> float:
        """Mean over the steps."""
        return fmean(self.velocity_errors)


@dataclass(frozen=True)
class TransferReport:
    """A table on the sentences it was ``calibrated`` on, as far as they are known, and on ``unseen`` ones.

    A table's own sentences have skips beyond their bounds as well: a calibration holds an error against the step with
    the skips of pre-calibration in force, here it is compared with the step with none. Hence the comparison.
    """

    table: str
    """Its fingerprint."""
    threshold: float
    metric: str
    calibrated: tuple[SentenceTransfer, ...]
    unseen: tuple[SentenceTransfer, ...]

    @property
    def groups(self) -> dict[str, tuple[SentenceTransfer, ...]]:
        """The unseen sentences by voice, and those that are longer or shorter than the table's own."""
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
        """The groups that the table serves clearly worse than its own sentences; none if those are not known."""
        if not self.calibrated:
            return ()
        distance, exceeding = _figures(self.calibrated)
        return tuple(
            name
            for name, rows in self.groups.items()
            if _figures(rows)[0] > distance * DISTANCE_TOLERANCE or _figures(rows)[1] > exceeding + EXCEEDING_TOLERANCE
        )

    @property
    def judgement(self) -> Judgement:
        """Whether all unseen sentences together are served as well as the table's own, by 95 % intervals over them."""
        distance, exceeding = _figures(self.calibrated)
        distances = np.array([one.distance for one in self.unseen])
        shares = np.array([one.exceeding for one in self.unseen])
        return Judgement(
            {
                "log-mel distance": margin(
                    distances,
                    np.full(len(distances), distance),
                    DISTANCE_TOLERANCE,
                    above=True,
                    share=True,
                    statistic="median",
                ),
                "skips beyond their bounds": margin(
                    shares, np.full(len(shares), exceeding), EXCEEDING_TOLERANCE, above=True
                ),
            }
        )

    @property
    def well(self) -> bool:
        """Whether the table serves new text as well as its own, and most of its skips keep to their bounds there."""
        return (
            bool(self.calibrated) and not self.advised and self.judgement.verdict == PASSES and not self._mostly_beyond
        )

    @property
    def _mostly_beyond(self) -> bool:
        return _figures(self.unseen)[1] >= MANY_EXCEEDING

    @property
    def advised(self) -> bool:
        """Whether calibrating on several sentences, some of them from :attr:`ill_served`, is advised."""
        return bool(self.ill_served)

    @property
    def verdict(self) -> str:
        """The verdict, in words."""
        if not self.calibrated:
            sentences = "sentence" if len(self.unseen) == 1 else "sentences"
            return (
                f"On {len(self.unseen)} {sentences}: {_words(self.unseen)}. To compare, measure the sentences that "
                "the table was calibrated on, too."
            )
        if not self.advised:
            figures = self._next_to_own(self.unseen)
            if self.judgement.verdict != PASSES:
                return f"Transfer is {self.judgement.words} ({figures})."
            if self._mostly_beyond:
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
        """The figures of ``rows``, each with that of the table's own sentences."""
        (distance, exceeding), (own_distance, own_exceeding) = _figures(rows), _figures(self.calibrated)
        return (
            f"log-mel distance {distance:.3f} on new text, {own_distance:.3f} on its own; {percent(exceeding)} of the "
            f"skips beyond their bounds, {percent(own_exceeding)} on its own"
        )

    def to_json(self) -> dict:
        """Plain JSON values."""
        own = {"ill_served": list(self.ill_served), "advised": self.advised, "well": self.well, "verdict": self.verdict}
        return {**asdict(self), **own}


def _figures(rows: Sequence[SentenceTransfer]) -> tuple[float, float]:
    """Median log-mel distance, and the mean share of skips beyond their bounds."""
    return median(one.distance for one in rows), fmean(one.exceeding for one in rows)


def _words(rows: Sequence[SentenceTransfer]) -> str:
    distance, exceeding = _figures(rows)
    return f"log-mel distance {distance:.3f}, {percent(exceeding)} of the skips beyond their bounds"


@dataclass(frozen=True)
class CalibrationRequest:
    """Calibrate for ``setting``, whose DiTReducio knobs say how, on all ``utterances`` together. ``combine`` is one of
    :data:`paretone.techniques.ditreducio.COMBINATIONS`. Reports are
    :class:`paretone.techniques.ditreducio.record.Trial` and :class:`Similarities`; the result is
    :class:`Calibrated`."""

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
    """A finished calibration."""

    record: CalibrationRecord
    operations: OperationCounts
    """Operations of one backbone evaluation of the first sentence."""
    seconds: float


@dataclass(frozen=True)
class TransferRequest:
    """Measure how well ``table``, ``calibrated`` on these utterances as far as they are known, serves ``unseen`` ones.
    Errors are compared with the threshold of DiTReducio in ``setting``. The result is :class:`TransferMeasured`."""

    activity: ClassVar[str] = "measuring the transfer"

    table: StrategyTable
    calibrated: tuple[Utterance, ...]
    unseen: tuple[Utterance, ...]
    setting: Setting


@dataclass(frozen=True)
class TransferMeasured:
    """Transfer of a strategy table to sentences that it was not calibrated on."""

    report: TransferReport
    seconds: float
