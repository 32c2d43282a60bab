"""Search for the evaluation times of a flow model, one time after another, by an objective. Torch-free.

* O3S, Optimal Step Sampling Search (Wang et al., IntMeanFlow, arXiv 2510.07979): each time in turn is placed by a
  ternary search between its neighbours, with the others fixed, in passes over all times.
* Coordinate search: each time in turn moves by a share of the gap to its neighbour, in either direction, while that
  helps; the share is halved once no time moves (compass search: Kolda, Lewis, Torczon, SIAM Review 45, 2003).

Both keep the best grid tried, including the initial one, so they never end worse. The objective is a black box and may
have several minima; which one is found depends on the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from paretone.errors import SettingError

Times = tuple[float, ...]
"""From 0 (noise) to 1 (speech), one more than steps."""
Value = tuple[float, ...]
"""Value of an objective, lower is better: compared figure by figure, later ones only on ties."""
Objective = Callable[[Times], Value]
OnTrial = Callable[["Trial"], None]

OPTIMAL, COORDINATE = "o3s", "coordinate"
METHODS = (OPTIMAL, COORDINATE)
NARROWEST = 0.1
"""A ternary search ends once its interval is this share of the gap between the neighbours."""
FIRST_SHARE, LAST_SHARE = 0.4, 0.1
"""First and last share of a gap by which the coordinate search moves a time."""
DIGITS = 6
"""Decimals of searched times: grids that differ by less count as equal."""
_THIRD = 1 / 3
_NARROWINGS = math.ceil(math.log(NARROWEST) / math.log(2 * _THIRD))
"""Steps of a ternary search."""


@dataclass(frozen=True)
class Trial:
    pass_number: int
    """From 1; 0 for an initial grid."""
    moved: int
    """Number of the moved time, from 1; 0: none."""
    times: Times
    value: Value
    best: bool
    """Whether it is the best so far."""


def search(
    method: str, objective: Objective, starts: Sequence[Times], passes: int, on_trial: OnTrial = lambda trial: None
) -> Trial:
    """Return the best grid found by ``method`` from the best of ``starts``, all of the same length, in at most
    ``passes`` passes; stops after a pass without improvement. ``on_trial``, after every trial, may raise to stop."""
    if method not in METHODS:
        raise SettingError(f"The search must be {' or '.join(METHODS)}, not {method!r}.")
    walk = _Walk(objective, on_trial)
    for times in starts:
        walk.value(rounded(times), 0, 0)
    (_ternary_passes if method == OPTIMAL else _compass_passes)(walk, passes)
    assert walk.best is not None
    return walk.best


def most_trials(method: str, steps: int, passes: int) -> int:
    """Number of trials with ``steps``, without the starts: the maximum for O3S, an estimate for coordinate search."""
    each = 2 * _NARROWINGS if method == OPTIMAL else 3
    return passes * (steps - 1) * each


def rounded(times: Sequence[float]) -> Times:
    """Round ``times`` as searches do, to compare them. Raises :class:`SettingError` unless they rise from 0 to 1."""
    found = (0.0, *(round(float(time), DIGITS) for time in times[1:-1]), 1.0)
    ends_right = len(times) > 1 and abs(times[0]) < 1e-6 and abs(times[-1] - 1) < 1e-3
    if not ends_right or not _rises(found):
        raise SettingError(f"The times of a grid must rise from 0 to 1, not be {', '.join(map(str, times))}.")
    return found


def _rises(times: Times) -> bool:
    return all(later > earlier for earlier, later in pairwise(times))


class _Walk:
    """Trials so far; every grid is tried once."""

    def __init__(self, objective: Objective, on_trial: OnTrial) -> None:
        self._objective, self._on_trial = objective, on_trial
        self._known: dict[Times, Value] = {}
        self.best: Trial | None = None

    def value(self, times: Times, number: int, moved: int) -> Value:
        """Value of ``times``, cached; infinite if they do not rise."""
        if not _rises(times):
            return (math.inf,)
        if times not in self._known:
            value = self._known[times] = self._objective(times)
            better = self.best is None or _worth(value) < _worth(self.best.value)
            trial = Trial(number, moved, times, value, better)
            if better:
                self.best = trial
            self._on_trial(trial)
        return self._known[times]

    @property
    def times(self) -> Times:
        assert self.best is not None
        return self.best.times


def _worth(value: Value) -> Value:
    """Value for comparison: NaN counts as infinite."""
    return tuple(math.inf if math.isnan(one) else one for one in value)


def _with(times: Times, index: int, time: float) -> Times:
    return (*times[:index], round(time, DIGITS), *times[index + 1 :])


def _ternary_passes(walk: _Walk, passes: int) -> None:
    for number in range(1, passes + 1):
        before = walk.times
        for index in range(1, len(before) - 1):
            times = walk.times
            low, high = times[index - 1], times[index + 1]
            for _ in range(_NARROWINGS):
                third = (high - low) * _THIRD
                left, right = low + third, high - third
                pair = [_worth(walk.value(_with(times, index, time), number, index)) for time in (left, right)]
                low, high = (low, right) if pair[0] <= pair[1] else (left, high)
        if walk.times == before:
            return


def _compass_passes(walk: _Walk, passes: int) -> None:
    share = FIRST_SHARE
    for number in range(1, passes + 1):
        before = walk.times
        for index in range(1, len(before) - 1):
            for _ in range(4):
                if not _moves(walk, index, share, number):
                    break
        if walk.times == before:
            if share <= LAST_SHARE:
                return
            share /= 2


def _moves(walk: _Walk, index: int, share: float, number: int) -> bool:
    """Whether moving one time by a share of the gap to either neighbour improves the best grid."""
    times = walk.times
    for neighbour in (index - 1, index + 1):
        walk.value(_with(times, index, times[index] + share * (times[neighbour] - times[index])), number, index)
        if walk.times != times:
            return True
    return False
