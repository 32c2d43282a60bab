"""A flow model's text about to be spoken: its script, the evaluations of a passage as the plan has them made, and what
they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from paretone.errors import SettingError
from paretone.models.base import Script, Voice
from paretone.models.families.passages import Decoded, FlowPrompt, FramedPassage, Sampler
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.sampling.branch_guidance import BranchGuidance
from paretone.sampling.calibration_target import diagonal_similarity
from paretone.sampling.flow import Combine, Evaluated, Evaluator, Run, sampling_grid
from paretone.sampling.operations import OperationCounts
from paretone.sampling.schedules import first_halved
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan


@dataclass(frozen=True)
class FlowNetwork:
    backbone: Any
    """A module of the model's own kind; see :class:`Evaluated`."""
    evaluator: Callable[[], Evaluator]
    """Gives what makes the evaluations of a passage."""


@dataclass(frozen=True)
class FlowScript(Script):
    plan: FlowPlan
    network: FlowNetwork
    prompt: FlowPrompt
    passages: tuple[FramedPassage, ...]

    @property
    def backbone(self) -> Any:
        return self.network.backbone

    @cached_property
    def times(self) -> np.ndarray:
        return times_of(self.plan)

    @property
    def steps(self) -> int:
        return len(self.times) - 1


def times_of(plan: FlowPlan) -> np.ndarray:
    """Times of the grid of ``plan``, float32, one more than steps: placed, or those of its options."""
    times = grid_of(plan.options) if plan.times is None else np.array(plan.times, np.float32)
    return first_halved(times) if plan.halves_first else times


def grid_of(options: Values) -> np.ndarray:
    """Times (steps + 1,) of the grid that ``options`` describe."""
    return sampling_grid(options["steps"], options["spacing"], options["sway"])


_ROUNDED = 1 - 1e-9
"""Sums of operations differ by less than this share through rounding."""


@dataclass(frozen=True)
class Phase:
    """Evaluations that share their branches, from number ``first`` on."""

    first: int
    run: Run
    options: Values
    counts: OperationCounts
    """Operations of one whole evaluation."""


class Evaluations:
    """Called with a state and the number of the evaluation, it gives the velocity to follow."""

    def __init__(
        self,
        evaluator: Evaluator,
        phases: Sequence[Phase],
        guided: Callable[[Tensor, Values], Tensor],
        combining: Callable[[Combine], Combine] | None = None,
    ) -> None:
        """``phases`` in their order; ``guided`` combines the branches under a phase's options, and ``combining``
        changes how."""
        self._evaluator, self._phases, self._guided = evaluator, phases, guided
        self.combine: Combine = self._own if combining is None else combining(self._own)
        """From the branches that ran to the velocity to follow."""
        self.operations: list[float] = []
        """Operations of each evaluation."""
        self.shares: list[float] = []
        """The same over what it would have cost whole, with all branches."""
        self._full = phases[0].counts.evaluation
        """Operations of a whole evaluation with all branches."""
        self._whole: list[float] = []
        """What each would have cost whole, with its own branches."""

    def __call__(self, state: Tensor, evaluation: int) -> Tensor:
        phase = self.phase(evaluation)
        velocities = self._evaluator.velocities(state, evaluation, phase.run)
        self._count(evaluation, phase.counts)
        return self.combine(velocities, evaluation)

    def _own(self, velocities: Tensor, evaluation: int) -> Tensor:
        return self._guided(velocities, self.phase(evaluation).options)

    def _count(self, evaluation: int, counts: OperationCounts) -> None:
        """Count a finished evaluation, which would cost ``counts`` whole."""
        self.operations.append(self._evaluator.operations(evaluation, counts))
        self.shares.append(self.operations[-1] / self._full)
        self._whole.append(counts.evaluation)

    @property
    def saved(self) -> frozenset[str]:
        """Parts of the plan that saved operations: ``skipping`` within evaluations, ``guidance`` whole branches."""
        spent, whole, full = sum(self.operations), sum(self._whole), len(self._whole) * self._full
        found = {"skipping": spent < _ROUNDED * whole, "guidance": whole < _ROUNDED * full}
        return frozenset(part for part, saves in found.items() if saves)

    def phase(self, evaluation: int) -> Phase:
        return next(one for one in reversed(self._phases) if one.first <= evaluation)


@dataclass(frozen=True)
class Stage:
    """A synthesis about to begin: what the part that makes its evaluations is given; see
    :attr:`paretone.setting.plan.FlowPlan.evaluator`."""

    plan: FlowPlan
    backbone: Evaluated
    title: str
    voice: Voice
    memory: dict[str, Any]
    """State that techniques keep with the loaded model between syntheses, each under the name of its module."""
    sample: Callable[[str, Evaluator], Tensor]
    """Samples the first passage of a text under the plan with this evaluator, and gives the last state."""
    status: Callable[[str], None] = lambda text: None

    @property
    def layered(self) -> DiffusionTransformer:
        """The backbone as one whose layers can be skipped. Raises :class:`SettingError` if it is none."""
        return require_layers(self.backbone, self.title)


def require_layers(backbone: Evaluated, title: str) -> DiffusionTransformer:
    """``backbone`` as one whose layers can be looked at and skipped. Raises :class:`SettingError` with the model's
    ``title`` if it is none."""
    if not isinstance(backbone, DiffusionTransformer):
        raise SettingError(
            f"{title} is not a diffusion transformer: skipping layers, caches and attention views need F5-TTS or "
            "MegaTTS 3."
        )
    return backbone


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


LARGEST_MAP = 512
"""Captured attention maps are pooled to at most this many queries and keys."""


@dataclass(frozen=True)
class FlowInternals:
    """The first passage of a synthesis, about to be sampled, and what is done with it, for profiling."""

    backbone: Evaluated
    plan: FlowPlan
    phases: tuple[Phase, ...]
    """Evaluations with the same branches, in order."""
    evaluations: Evaluations
    """The velocity that the sampler follows."""
    sampler: Sampler
    times: np.ndarray
    """When the backbone is evaluated, in order."""
    frames: int
    passages: int
    audio_seconds: float
    """Seconds of audio of the first passage."""
    begin: Callable[[], Run]
    """Computes again what its evaluations share."""
    guided: Callable[[Tensor, Values], Tensor]
    """The velocities of all branches to the one that is followed."""
    integrate: Callable[[], Tensor]
    """Samples it, all evaluations, and gives the last state."""
    decode: Callable[[Tensor], Decoded]
    """The last state to audio."""


def attention_of(
    backbone: DiffusionTransformer, layer: int, state: Tensor, evaluation: int, run: Any
) -> tuple[np.ndarray, tuple[float, ...]]:
    """Attention of ``layer`` at one evaluation of ``state``: maps (branches, queries, keys), mean over heads, and the
    diagonal similarity of each branch. All layers up to it compute everything, under any plan."""
    looked: dict[str, Tensor] = {}

    def probe(index: int, name: str, value: Tensor) -> None:
        if index == layer and name == "attention_input":
            looked[name] = value

    hidden = backbone.enter(state, run)
    for index in range(layer + 1):
        hidden = backbone.layer(index, hidden, evaluation, run, probe=probe)
    maps = backbone.attention_maps(layer, looked["attention_input"], run, LARGEST_MAP)
    query, key = backbone.attention_map_inputs(layer, looked["attention_input"])
    similarities = tuple(diagonal_similarity(query[row][None], key[row][None]) for row in range(len(query)))
    return maps.float().cpu().numpy(), similarities
