"""Evaluations of one passage whose branches are decided while it is sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from paretone.models.families.evaluations import Evaluations, Phase
from paretone.sampling.branch_guidance import BranchGuidance
from paretone.sampling.evaluating import Evaluator, Run
from paretone.sampling.flow import Combine
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Values


class DecidedEvaluations(Evaluations):
    """At every evaluation, the branches that its guidance needs."""

    def __init__(
        self,
        evaluator: Evaluator,
        phases: Sequence[Phase],
        guided: Callable[[Tensor, Values], Tensor],
        guidance: BranchGuidance,
        own: tuple[int, ...] | None,
        begin: Callable[[tuple[int, ...]], Run],
        counts: Callable[[int], OperationCounts],
        most: int,
        combining: Callable[[Combine], Combine] | None = None,
    ) -> None:
        """The only one of ``phases`` has the branches and the options without this guidance; ``own`` are its branches
        where the guidance has the same strengths, and may be combined as without it. ``begin`` gives the run of some
        branches, ``counts`` the cost of an evaluation by its number of branches; ``most`` may run at once."""
        super().__init__(evaluator, phases, guided, combining)
        self._guidance, self._plain_branches, self._begin, self._counts = guidance, own, begin, counts
        self._full = counts(most).evaluation
        self._runs: dict[tuple[int, ...], Run] = {} if own is None else {own: phases[0].run}

    def __call__(self, state: Tensor, evaluation: int) -> Tensor:
        branches = self._guidance.needed(evaluation)
        if branches not in self._runs:
            self._runs[branches] = self._begin(branches)
        velocities = self._evaluator.velocities(state, evaluation, self._runs[branches])
        self._count(evaluation, self._counts(len(branches)))
        return self.combine(velocities, evaluation)

    def _own(self, velocities: Tensor, evaluation: int) -> Tensor:
        plain = self._plain if self._guidance.needed(evaluation) == self._plain_branches else None
        return self._guidance.velocity(velocities, evaluation, plain)

    def _plain(self, velocities: Tensor) -> Tensor:
        return self._guided(velocities, self._phases[0].options)
