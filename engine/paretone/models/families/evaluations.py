"""Scripts of flow models, and the planned evaluations of a passage with their cost."""

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
from paretone.models.families.together import Ask
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.observer import Status
from paretone.sampling.calibration_target import diagonal_similarity
from paretone.sampling.flow import Combine, Evaluated, Evaluator, Run, Whole, sampling_grid
from paretone.sampling.operations import OperationCounts
from paretone.sampling.schedules import first_halved
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan


@dataclass(frozen=True)
class FlowNetwork:
    backbone: Any
    """A module of the model's own type; see :class:`Evaluated`."""
    evaluator: Callable[[], Evaluator]


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
    """Grid times of ``plan`` (steps + 1,), float32: placed times, or those of its options."""
    times = grid_of(plan.options) if plan.times is None else np.array(plan.times, np.float32)
    return first_halved(times) if plan.halves_first else times


def grid_of(options: Values) -> np.ndarray:
    """Times (steps + 1,) of the grid of ``options``."""
    return sampling_grid(options["steps"], options["spacing"], options["sway"])


_ROUNDED = 1 - 1e-9
"""Relative tolerance for rounding in sums of operations."""


@dataclass(frozen=True)
class Phase:
    """Consecutive evaluations with the same branches, from number ``first``."""

    first: int
    run: Run
    options: Values
    counts: OperationCounts
    """Operations of one full evaluation."""


def phase_at(phases: Sequence[Phase], evaluation: int) -> Phase:
    return next(one for one in reversed(phases) if one.first <= evaluation)


class Asking(Whole):
    """Evaluations computed with those of other passages."""

    def __init__(self, backbone: DiffusionTransformer, ask: Ask) -> None:
        super().__init__(backbone)
        self._together, self._ask = backbone.velocities_together, ask

    def velocities(self, state: Tensor, evaluation: int, run: Any) -> Tensor:
        found: Tensor = self._ask(self._together, (state, evaluation, run))
        return found


class Evaluations:
    """The guided velocity, called with a state and the number of the evaluation."""

    def __init__(
        self,
        evaluator: Evaluator,
        at: Callable[[int], tuple[Run, OperationCounts]],
        own: Combine,
        full: float,
        combining: Callable[[Combine], Combine] | None = None,
    ) -> None:
        """``at`` gives the run of an evaluation, and its operations if nothing is skipped; ``own`` combines its
        branches, and ``combining`` modifies that; ``full``: operations of an evaluation with all branches."""
        self._evaluator, self._at, self._full = evaluator, at, full
        self.combine: Combine = own if combining is None else combining(own)
        """Velocities of the branches to the velocity to follow."""
        self.operations: list[float] = []
        """Operations of each evaluation."""
        self.shares: list[float] = []
        """Operations of each evaluation relative to a full one with all branches."""
        self._whole: list[float] = []
        """Operations of each full evaluation with its own branches."""

    def __call__(self, state: Tensor, evaluation: int) -> Tensor:
        run, counts = self._at(evaluation)
        velocities = self._evaluator.velocities(state, evaluation, run)
        self.operations.append(self._evaluator.operations(evaluation, counts))
        self.shares.append(self.operations[-1] / self._full)
        self._whole.append(counts.evaluation)
        return self.combine(velocities, evaluation)

    @property
    def saved(self) -> frozenset[str]:
        """Parts of the plan that saved operations: ``skipping`` within evaluations, ``guidance`` entire branches."""
        spent, whole, full = sum(self.operations), sum(self._whole), len(self._whole) * self._full
        found = {"skipping": spent < _ROUNDED * whole, "guidance": whole < _ROUNDED * full}
        return frozenset(part for part, saves in found.items() if saves)


@dataclass(frozen=True)
class Stage:
    """A synthesis about to begin, as passed to the plan's evaluator part; see
    :attr:`paretone.setting.plan.FlowPlan.evaluator`."""

    plan: FlowPlan
    backbone: Evaluated
    title: str
    voice: Voice
    memory: dict[str, Any]
    """State that techniques keep with the loaded model between syntheses, each under the name of its module."""
    sample: Callable[[str, Evaluator], Tensor]
    """Samples the first passage of a text under the plan with this evaluator, and returns the last state."""
    status: Status = lambda text: None

    @property
    def layered(self) -> DiffusionTransformer:
        """The backbone as one with skippable layers. Raises :class:`SettingError` for others."""
        return require_layers(self.backbone, self.title)


NO_LAYERS = "{} is not a diffusion transformer: skipping layers, caches and attention views need one."


def require_layers(backbone: Evaluated, title: str) -> DiffusionTransformer:
    """``backbone``, whose layers can be inspected and skipped; else raises :class:`SettingError` with ``title``."""
    if not isinstance(backbone, DiffusionTransformer):
        raise SettingError(NO_LAYERS.format(title))
    return backbone


@dataclass(frozen=True)
class FlowInternals:
    """The first passage of a synthesis before sampling, for profiling."""

    backbone: Evaluated
    plan: FlowPlan
    phases: tuple[Phase, ...]
    evaluations: Evaluations
    sampler: Sampler
    times: np.ndarray
    """Times of the backbone's evaluations, in order."""
    frames: int
    passages: int
    audio_seconds: float
    begin: Callable[[], Run]
    """Recomputes the state shared by its evaluations."""
    guided: Callable[[Tensor, Values], Tensor]
    integrate: Callable[[], Tensor]
    """Runs all evaluations and returns the last state."""
    decode: Callable[[Tensor], Decoded]


def attention_of(
    backbone: DiffusionTransformer, layer: int, state: Tensor, evaluation: int, run: Any
) -> tuple[np.ndarray, tuple[float, ...]]:
    """Attention of ``layer`` at one evaluation of ``state``: maps (branches, queries, keys), averaged over heads, and
    the diagonal similarity of each branch. All layers up to it are computed fully, under any plan."""
    looked: dict[str, Tensor] = {}

    def probe(index: int, name: str, value: Tensor) -> None:
        if index == layer and name == "attention_input":
            looked[name] = value

    hidden = backbone.enter(state, evaluation, run)
    for index in range(layer + 1):
        hidden = backbone.layer(index, hidden, evaluation, run, probe=probe)
    maps = backbone.attention_maps(layer, looked["attention_input"], run, largest=512)
    query, key = backbone.attention_map_inputs(layer, looked["attention_input"])
    similarities = tuple(diagonal_similarity(query[row][None], key[row][None]) for row in range(len(query)))
    return maps.float().cpu().numpy(), similarities
