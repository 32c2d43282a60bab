"""DiTReducio's three passes, fast: which layer may skip what at which step. The published algorithm is
``tests/peers/ditreducio_algorithm.py``; both give the same table.

1. *Check*: one plain sampling run measures how diagonal every layer's attention is; the most diagonal cells are marked.
2. *Pre-calibration*: marked cells try temporal skipping.
3. *Calibration*: all other cells try temporal, then branch skipping.

A skip is accepted if the backbone's output changes by less than l/L of the threshold. Within a step, accepted skips
stay in force while later layers are tried; the step is then taken with all of them, so that errors are measured on the
final trajectory. Source: DiTReducio, section 3.4 and algorithm 1, and the official code where the paper is silent.

Several sentences may be calibrated together (ours; the paper has one). They go through the passes in lockstep, each on
its own trajectory, and every skip is tried on all of them: their worst or their mean error decides for all. Cost and
memory equal those of as many calibrations of one sentence.

Cost of a trial: see :mod:`paretone.techniques.ditreducio.trajectory`. Moreover, until the first acceptance,
pre-calibration follows the trajectory of the check pass, whose states are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np

from paretone.errors import SettingError
from paretone.observer import Observer, Work
from paretone.sampling.actions import SkipAction
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.record import (
    CALIBRATION,
    PRE_CALIBRATION,
    CalibrationRecord,
    Similarities,
    Trial,
    origin,
)
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.ditreducio.trajectory import Trajectory

Rows = tuple[tuple[SkipAction, ...], ...]

_ERRORS: dict[str, Callable[[Sequence[float]], float]] = {"worst": max, "mean": fmean}
_SIMILARITIES: dict[str, Callable[..., np.ndarray]] = {"worst": np.min, "mean": np.mean}
"""The worst sentence has the largest error and the least diagonal attention."""


def calibrate(
    targets: Sequence[CalibrationTarget],
    knobs: Values,
    observer: Observer,
    combine: str = "worst",
    side_by_side: bool | None = None,
    candidates: Sequence[SkipAction] = (SkipAction.TS, SkipAction.BS),
    pre_calibrates: bool = True,
) -> CalibrationRecord:
    """Run the three passes on ``targets``, sentences of one model under one setting.

    ``knobs`` are the technique's, checked; ``combine`` is one of :data:`paretone.techniques.ditreducio.COMBINATIONS`.
    With ``side_by_side`` both candidates of a cell pass the remaining layers in one batch: faster if a small batch
    leaves the device idle (a GPU), slower if twice the work takes twice the time (a CPU), hence the default. The third
    pass tries ``candidates`` in their order; without ``pre_calibrates`` the second pass is omitted, for ablations.
    Raises :class:`SettingError` for sentences that do not belong together.
    """
    if combine not in _ERRORS:
        raise SettingError(f"The errors of several sentences combine as {' or '.join(_ERRORS)}, not {combine!r}.")
    compatibility = check_together(targets)
    if side_by_side is None:
        side_by_side = targets[0].noise.device.type != "cpu"
    passes = _Passes(targets, knobs, observer, combine, side_by_side, candidates)
    similarities, cut = passes.check()
    if not pre_calibrates:
        cut = math.inf
    pre_table, pre_trials = passes.pre_calibrate(similarities >= cut)
    table, trials = passes.calibrate(pre_table)
    words = origin("calibrated", passes.threshold, len(targets), combine)
    return CalibrationRecord(
        StrategyTable(compatibility, table, str(knobs["branch_skip"]), words, str(knobs["temporal"])),
        knobs,
        cut,
        (*pre_trials, *trials),
        similarities,
        combine=combine,
    )


def check_together(targets: Sequence[CalibrationTarget]) -> Compatibility:
    """Compatibility of a table of these sentences. Raises :class:`SettingError` unless they belong together."""
    if not targets:
        raise SettingError("There is no sentence to calibrate on; give at least one.")
    compatibility = targets[0].compatibility
    for number, other in enumerate(targets[1:], start=2):
        mismatch = compatibility.mismatch(other.compatibility)
        if mismatch:
            raise SettingError(f"Sentences 1 and {number} cannot be calibrated together: {mismatch}.")
    return compatibility


class _Passes:
    """The three passes over the sentences, with their shared state."""

    def __init__(
        self,
        targets: Sequence[CalibrationTarget],
        knobs: Values,
        observer: Observer,
        combine: str,
        side_by_side: bool,
        candidates: Sequence[SkipAction],
    ) -> None:
        self.layers, self.steps = targets[0].backbone.layers, targets[0].steps
        self.threshold = float(knobs["threshold"])
        self.marked_share = float(knobs["marked"])
        branches = targets[0].branches
        self.candidates = tuple(one for one in candidates if one is not SkipAction.BS or branches > 1)
        self.combine = combine
        self.observer = observer
        # In layer evaluations; a generous estimate, since acceptances are unknown beforehand.
        total = 3 * self.steps * self.layers + (self.steps - 1) * self.layers * (self.layers + 1)
        self.work = Work(observer, total * len(targets))
        self.trajectories = [Trajectory(target, knobs, self.work, side_by_side) for target in targets]

    def check(self) -> tuple[np.ndarray, float]:
        """Pass 1: return similarities (layers, steps) and the value from which a cell is marked."""
        self.observer.status("Check: how diagonal is the attention?")
        similarities = np.full((self.layers, self.steps), np.nan)
        for step in range(self.steps):
            each = [trajectory.explore(step) for trajectory in self.trajectories]
            similarities[:, step] = _SIMILARITIES[self.combine](each, axis=0)
            self.observer.report("similarities", Similarities(similarities.copy()))
        return similarities, float(np.percentile(similarities, 100 - self.marked_share))

    def pre_calibrate(self, marked: np.ndarray) -> tuple[Rows, list[Trial]]:
        """Pass 2: try temporal skipping on marked cells, up to the last marked step."""
        table = [[SkipAction.NONE] * self.steps for _ in range(self.layers)]
        trials: list[Trial] = []
        asked = [bool(marked[:, step].any()) for step in range(self.steps)]
        last = max((step for step in range(1, self.steps) if asked[step]), default=0)
        if last:
            self.observer.status("Pre-calibration: may the most diagonal layers repeat themselves?")
            self._restart(PRE_CALIBRATION)
        nothing = [SkipAction.NONE] * self.layers
        diverged = False
        for step in range(1, last + 1):
            if not diverged and not asked[step]:
                for trajectory in self.trajectories:
                    trajectory.pass_by(step, any(asked[step + 1 : step + 1 + trajectory.reaches_back]))
                continue
            candidates = [(SkipAction.TS,) if marked[layer, step] else () for layer in range(self.layers)]
            decided = self._try_step(step, nothing, candidates, PRE_CALIBRATION, trials)
            diverged = diverged or SkipAction.TS in decided
            for layer, action in enumerate(decided):
                table[layer][step] = action
        self.work.reached(2 * self.steps * self.layers * len(self.trajectories))
        return tuple(map(tuple, table)), trials

    def calibrate(self, pre_table: Rows) -> tuple[Rows, list[Trial]]:
        """Pass 3: try every candidate on all cells left undecided by pass 2."""
        self.observer.status("Calibration: what may the other layers skip?")
        table = [[SkipAction.NONE] * self.steps for _ in range(self.layers)]
        trials: list[Trial] = []
        self._restart(CALIBRATION)
        for step in range(1, self.steps):
            given = [row[step] for row in pre_table]
            candidates = [self.candidates if action is SkipAction.NONE else () for action in given]
            for layer, action in enumerate(self._try_step(step, given, candidates, CALIBRATION, trials)):
                table[layer][step] = action
        return tuple(map(tuple, table)), trials

    def _restart(self, phase: str) -> None:
        for trajectory in self.trajectories:
            trajectory.restart(phase)

    def _try_step(
        self,
        step: int,
        given: Sequence[SkipAction],
        candidates: Sequence[Sequence[SkipAction]],
        phase: str,
        trials: list[Trial],
    ) -> list[SkipAction]:
        """Decide every layer at one step and take it. ``given`` applies from the start; a layer with ``candidates``
        keeps the first that passes."""
        for trajectory in self.trajectories:
            trajectory.begin(step, given)
        decided = list(given)
        for layer in range(self.layers):
            each = [trajectory.outcomes(layer, candidates[layer]) for trajectory in self.trajectories]
            for outcomes in zip(*each, strict=True):
                pairs = list(zip(self.trajectories, outcomes, strict=True))
                errors = tuple(trajectory.error(outcome) for trajectory, outcome in pairs)
                error = _ERRORS[self.combine](errors)
                passes = error < (layer + 1) / self.layers * self.threshold
                action = outcomes[0].action
                trial = Trial(phase, step, layer, action, error, passes, errors if len(errors) > 1 else ())
                trials.append(trial)
                self.observer.report("trial", trial)
                if passes:
                    decided[layer] = action
                    for trajectory, outcome in pairs:
                        trajectory.accept(layer, outcome)
                    break
            for trajectory in self.trajectories:
                trajectory.settle(layer, decided[layer])
            self.work.done(len(candidates[layer]) * (self.layers - layer) * len(self.trajectories))
        for trajectory in self.trajectories:
            trajectory.finish()
        return decided
