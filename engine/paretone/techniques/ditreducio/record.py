"""Record of a calibration, and the tables derived from it at other thresholds.

Acceptance is sequential: a trial's error was measured with every earlier decision in force. So a table at another
threshold follows *exactly* only while all its decisions are the recorded ones. From the first decision that differs on,
the recorded errors are those of a neighbouring path: the table is then a *prediction*, and only a calibration at that
threshold can confirm it. A calibration at a small threshold rejects most candidates, hence measures both errors of
almost every cell: it is the one to predict from.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace

import numpy as np

from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.table import StrategyTable

PRE_CALIBRATION = "pre-calibration"
CALIBRATION = "calibration"
END = "end"
"""The phase of the calibration for the end of the trajectory; the error of its trials is the distance of the end that
is foreseen with all skips so far."""


@dataclass(frozen=True)
class Trial:
    """One candidate tried on one cell. The bound it had to stay under is ``(layer + 1) / layers * threshold``."""

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
    """A spoken sentence, its voice by id. ``frames`` of new speech follow ``prompt_frames`` of the voice."""

    text: str
    voice: str
    frames: int = 0
    prompt_frames: int = 0


@dataclass(frozen=True)
class Derivation:
    """A table derived from a record at another threshold."""

    table: StrategyTable
    exact: bool
    """Whether a calibration at this threshold is certain to give this table."""
    differs_at: Trial | None = None
    """The first recorded trial that this threshold decides differently, when not exact."""
    unmeasured: int = 0
    """Cells decided without a measured error for the branch-skipping candidate."""


@dataclass(frozen=True)
class CalibrationRecord:
    """One finished calibration: its knobs, every trial, and the table it gave."""

    table: StrategyTable
    knobs: Values
    cut: float
    """Diagonal similarity from which a cell was marked in the check phase."""
    trials: tuple[Trial, ...]
    similarities: np.ndarray = field(repr=False, compare=False)
    """(layers, steps) diagonal similarity of the check phase."""
    sentences: tuple[Sentence, ...] = ()
    """Sentences of the calibration."""
    combine: str = "worst"
    """Combination of several sentences' errors."""
    seed: int = 0
    created: str = ""
    machine: str = ""

    @property
    def threshold(self) -> float:
        """The threshold δ it was calibrated at, in the unit of its error metric."""
        return float(self.knobs["threshold"])

    @property
    def is_for_end(self) -> bool:
        """Whether it was calibrated for the end of the trajectory, under a budget instead of a threshold."""
        return self.knobs.get("objective") == "end"

    @property
    def marked(self) -> np.ndarray:
        """(layers, steps) bool: the cells marked in the check phase."""
        return self.similarities >= self.cut

    def normalised_errors(self, action: SkipAction) -> np.ndarray:
        """(layers, steps) errors of ``action`` divided by ``(layer + 1) / layers``, so that one threshold cuts them
        all; NaN where not measured. The later phase wins where both tried."""
        errors = np.full((self.table.layers, self.table.steps), np.nan)
        for trial in self.trials:
            if trial.action is action and trial.phase != END:
                errors[trial.layer, trial.step] = trial.error * self.table.layers / (trial.layer + 1)
        return errors

    def derive(self, threshold: float) -> Derivation:
        """The table at ``threshold``; see the module's introduction for when it is exact.

        A prediction reckons that the errors of the skips of one step add up: what a trial added to the error of the
        skips that were in force when it was measured, it would add to that of those which would now be in force. A
        trial that added nothing is taken by its whole error. (Taking every error as measured predicts far too many
        skips.)

        A calibration for the end of the trajectory has no threshold: its table is the same at all.
        """
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
    """Origin of a table, in words."""
    words = f"{how} at threshold {threshold:g}"
    return words if sentences < 2 else f"{words} on the {combine} error of {sentences} sentences"


def end_origin(operations: float, sentences: int) -> str:
    """Origin of a table that was calibrated for the end of the trajectory, in words."""
    words = f"calibrated for the end at {operations:g} % of the operations"
    return words if sentences < 2 else f"{words} on {sentences} sentences"
