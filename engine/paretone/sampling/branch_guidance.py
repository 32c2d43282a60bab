"""Guidance that chooses the branches of every evaluation: strengths vary with time, saturated effects are not computed.

Branches are nested: each knows less than the one before it. An effect is the difference between the velocities of two
branches. The velocity is the first branch's plus every effect times its strength: of two, v_c + s (v_c − v_u).

An effect has *saturated* if computing it again would change little. Its change is predicted from its rate between the
last two computed evaluations and the time since. While the prediction is below the threshold, the last difference is
reused, like branch skipping in DiTReducio and guidance reuse in FasterCache (arXiv 2410.19355), but decided at run
time. Time counts, not evaluations: on grids that are dense near the noise, neighbouring evaluations hardly differ while
the effect still changes. Alternatively the effect ends for good, as in Adaptive Guidance (Castillo et al., arXiv
2312.12487), whose test is the cosine of both velocities. A branch runs only if an unsaturated effect needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from paretone.sampling.flow import relative_change
from paretone.sampling.guidance import Effect, Saturation, Strength, effects

Key = tuple[int, int]
"""The two branches of an effect."""


@dataclass(frozen=True)
class _Known:
    """Last computed value of an effect."""

    difference: Tensor
    evaluation: int
    rate: float | None
    """Relative change per unit of time; ``None`` if computed only once."""


class BranchGuidance:
    """Guidance of one passage. For every evaluation, in order: :meth:`needed`, then :meth:`velocity`."""

    def __init__(
        self, times: Sequence[float], strengths: Sequence[Strength], saturation: Saturation | None = None
    ) -> None:
        """``times`` of all evaluations; ``strengths`` of each branch over the next."""
        self._times, self._strengths, self._saturation = times, strengths, saturation
        self._known: dict[Key, _Known] = {}
        """Last computed value of each effect."""
        self._ended: set[Key] = set()

    def needed(self, evaluation: int) -> tuple[int, ...]:
        """Branches to compute, in order."""
        found = self._effects(evaluation)
        branches, known = {0}, {0}
        for one in found:
            if self._skipped(one, evaluation):
                if self._reuses and one.first in known:
                    known.add(one.last)
                continue
            branches.add(one.last)
            if one.first not in known:
                branches.add(one.first)
            known.add(one.last)
        return tuple(sorted(branches))

    def whole(self, evaluation: int) -> bool:
        """Whether this evaluation computes every effect."""
        return not any(self._skipped(one, evaluation) for one in self._effects(evaluation))

    def velocity(self, rows: Tensor, evaluation: int, plain: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Combine the velocities of the :meth:`needed` branches, branch-major; ``plain``: if no effect is skipped."""
        needed = self.needed(evaluation)
        branches = dict(zip(needed, rows.chunk(len(needed)), strict=True))
        combined = plain(rows) if plain is not None and self.whole(evaluation) else None
        velocity = branches[0]
        # Decide everything from the state before this evaluation.
        skipped = [self._skipped(one, evaluation) for one in self._effects(evaluation)]
        for one, skip in zip(self._effects(evaluation), skipped, strict=True):
            key = one.first, one.last
            if skip:
                if not self._reuses:
                    continue
                difference = self._known[key].difference
                if one.first in branches:
                    branches.setdefault(one.last, branches[one.first] - difference)
            else:
                difference = branches[one.first] - branches[one.last]
                self._observe(key, difference, branches, evaluation)
            velocity = velocity + difference * one.strength
        return velocity if combined is None else combined

    @property
    def _reuses(self) -> bool:
        return self._saturation is not None and self._saturation.reuse

    def _effects(self, evaluation: int) -> tuple[Effect, ...]:
        return effects(self._strengths, float(self._times[evaluation]))

    def _skipped(self, effect: Effect, evaluation: int) -> bool:
        """Whether an effect has saturated and is skipped now."""
        key = effect.first, effect.last
        if not self._reuses:
            return key in self._ended
        known = self._known.get(key)
        if known is None or known.rate is None or self._saturation is None:
            return False
        if self._saturation.again and evaluation - known.evaluation >= self._saturation.again:
            return False
        elapsed = float(self._times[evaluation] - self._times[known.evaluation])
        return known.rate * elapsed < self._saturation.threshold

    def _observe(self, key: Key, difference: Tensor, branches: dict[int, Tensor], evaluation: int) -> None:
        if self._saturation is None:
            return
        if self._saturation.reuse:
            before, rate = self._known.get(key), None
            if before is not None:
                elapsed = float(self._times[evaluation] - self._times[before.evaluation])
                rate = before.rate
                if elapsed > 0:
                    rate = relative_change(before.difference, difference) / elapsed
            self._known[key] = _Known(difference, evaluation, rate)
        else:
            first, last = (branches[branch].flatten().float() for branch in key)
            if 1 - F.cosine_similarity(first, last, dim=0).item() < self._saturation.threshold:
                self._ended.add(key)
