"""How far one can go along a row of settings before it is heard: a staircase, and the psychometric function of it.

In every trial the reference is heard again among two sounds, and the listener says which of the two is the other: right
by chance every second time. The staircase (3 down 1 up: Levitt 1971, "Transformed up-down methods in psychoacoustics")
spends its trials near the settings that are heard barely; what they say of the listener is the posterior of a logistic
psychometric function. Free of Qt and of torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GUESSING, LAPSES = 0.5, 0.02
"""Shares of right answers without hearing anything, and of wrong ones in spite of hearing it."""
RIGHT_TO_GO_DOWN = 3
TRIALS = 45
"""A usual number of trials, which gives an interval of about a third of the row."""
_CENTRES, _WIDTHS = 241, 33
"""Points of the posterior's grid."""
_BEYOND = 0.5
"""How far the centre may lie outside the row, as a share of it."""
_NARROWEST, _WIDEST = 0.02, 0.3
"""Widths of the psychometric function, as shares of the row."""


@dataclass(frozen=True)
class Answer:
    """One trial: which place of the row was compared with the reference, and whether the listener recognised it."""

    place: int
    right: bool


class Staircase:
    """Chooses the place of the next trial in a row of ``places``, 0 the closest to the reference.

    It begins at the far end, where everybody should hear the difference. Three right answers at one place lead closer,
    each wrong one further away, by steps that halve with every turn until they are one place. The caller decides how
    many trials there are.
    """

    def __init__(self, places: int) -> None:
        if places < 2:
            raise ValueError(f"a staircase needs two places or more, not {places}")
        self._last = places - 1
        self.place = self._last
        """Of the next trial."""
        self.answers: list[Answer] = []
        self._step = max(1, self._last // 3)
        self._right = 0
        self._direction = 0

    def answer(self, right: bool) -> None:
        """Take the answer to the trial at :attr:`place`, and choose the next place."""
        self.answers.append(Answer(self.place, right))
        self._right = self._right + 1 if right else 0
        if not right:
            self._go(1)
        elif self._right == RIGHT_TO_GO_DOWN:
            self._right = 0
            self._go(-1)

    def _go(self, direction: int) -> None:
        """A step; turning, or an end of the row, halves it."""
        blocked = not 0 <= self.place + direction <= self._last
        if blocked or (self._direction and direction != self._direction):
            self._step = max(1, self._step // 2)
        self._direction = direction
        self.place = min(max(self.place + direction * self._step, 0), self._last)


@dataclass(frozen=True)
class Noticeable:
    """Where on the scale of the row a difference is heard every second time, with its 95 % credible interval."""

    value: float
    low: float
    high: float
    beyond: float
    """Probability that it lies beyond the far end: that nothing in the row is heard that often."""


def noticeable(answers: Sequence[Answer], scale: Sequence[float]) -> Noticeable:
    """What ``answers`` say; ``scale`` has a value for every place, rising (such as log2 of the speed-up).

    The probability of a right answer at x is ½ + (½ − λ)·logistic((x − centre)/width), with lapses λ = 0.02. The
    posterior of the centre over a flat prior, which reaches half a row beyond both ends, is summed over widths of 2 to
    30 % of the row (their logarithm is flat, too). Raises :class:`ValueError` without answers.
    """
    if not answers:
        raise ValueError("there are no answers")
    values = np.asarray(scale, float)
    if not (np.diff(values) > 0).all():
        raise ValueError("the scale of a row rises from place to place")
    row = values[-1] - values[0]
    centres = np.linspace(values[0] - _BEYOND * row, values[-1] + _BEYOND * row, _CENTRES)
    widths = row * np.geomspace(_NARROWEST, _WIDEST, _WIDTHS)
    log_likelihood = np.zeros((_CENTRES, _WIDTHS))
    for place in sorted({one.place for one in answers}):
        there = [one.right for one in answers if one.place == place]
        chance = right_share(values[place], centres[:, None], widths)
        log_likelihood += sum(there) * np.log(chance) + (len(there) - sum(there)) * np.log(1 - chance)
    posterior = np.exp(log_likelihood - log_likelihood.max()).sum(1)
    below = np.cumsum(posterior) / posterior.sum()
    low, value, high = (float(np.interp(share, below, centres)) for share in (0.025, 0.5, 0.975))
    beyond = float(posterior[centres > values[-1]].sum() / posterior.sum())
    return Noticeable(value, low, high, beyond)


def right_share(value: float, centre: float | np.ndarray, width: float | np.ndarray) -> np.ndarray:
    """Share of right answers at ``value`` of listeners with such a psychometric function."""
    return GUESSING + (1 - GUESSING - LAPSES) / (1 + np.exp(-(value - centre) / width))
