"""Make the parts of plans, and check their results.

Our own parts are used unchecked. A plug-in's part may raise, or return ``None`` or a tensor of the wrong shape: each
result is checked on arrival, and the error names the part and its plug-in. Otherwise the fault would appear later in
our code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from paretone.sampling.autoregressive import Cycle, Decoding
from paretone.sampling.demasking import CanvasRun, Guide, Open, Schedule
from paretone.sampling.flow import Combine, Evaluator, Follow
from paretone.sampling.operations import OperationCounts
from paretone.sampling.tokens import TokenSampler
from paretone.sampling.verification import Rule, Verification
from paretone.setting.plan import Part
from paretone.wording import listed

if TYPE_CHECKING:
    from paretone.models.families.evaluations import Stage
    from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest

Network = TypeVar("Network")
Check = Callable[..., None]
"""Check of a result, called with it and its arguments; raises :class:`paretone.errors.PlugInError`."""


# --- Flow models ------------------------------------------------------------------------------------------------------
def stepper(part: Part, times: np.ndarray, own: Follow) -> Follow:
    """See :attr:`paretone.setting.plan.FlowPlan.stepper`."""

    def check(found: object, state: Tensor, velocity: Tensor, step: int) -> None:
        _require_shape(part, found, state.shape, "the next state", state.dtype)

    return _function(part, part.make(times, own), "a function (state, velocity, step) for the next state", check)


def combining(part: Part, own: Combine) -> Combine:
    """See :attr:`paretone.setting.plan.FlowPlan.combining`."""

    def check(found: object, velocities: Tensor, evaluation: int) -> None:
        _require_shape(part, found, (1, *velocities.shape[1:]), "the velocity to follow", velocities.dtype)

    return _function(part, part.make(own), "a function (velocities, evaluation) for the velocity", check)


def evaluators(part: Part, stage: Stage) -> Callable[[], Evaluator]:
    """See :attr:`paretone.setting.plan.FlowPlan.evaluator`."""

    def check_velocities(found: object, state: Tensor, evaluation: int, run: Any) -> None:
        _require_shape(part, found, (run.branches, *state.shape[1:]), "the velocities of all branches")

    def check_operations(found: object, evaluation: int, counts: OperationCounts) -> None:
        if not isinstance(found, int | float) or not 0 <= found < math.inf:
            raise part.wrong(found, "a number of operations from operations(evaluation, counts)")

    checks: dict[str, Check | None] = {"velocities": check_velocities, "operations": check_operations}
    make = _function(part, part.make(stage), "a function without arguments for each passage's evaluator")
    return lambda: _held(part, make(), "an Evaluator", checks)


# --- Language models --------------------------------------------------------------------------------------------------
def sampler(part: Part, own: TokenSampler) -> TokenSampler:
    """See :attr:`paretone.setting.plan.LanguagePlan.sampler`."""

    def check(found: object, logits: Tensor, history: Sequence[int]) -> None:
        _require_shape(part, found, logits.shape, "probabilities of every id")

    return _held(part, part.make(own), "a TokenSampler", {"probabilities": check})


def rule(part: Part, codes: int, rows: int, device: torch.device) -> Rule:
    """See :attr:`paretone.setting.plan.LanguagePlan.acceptance`."""

    def check(found: object, *given: Any) -> None:
        if not isinstance(found, Verification):
            raise part.wrong(found, "an paretone.sampling.verification.Verification")

    return _function(part, part.make(codes, rows, device), "a rule for drafted tokens, a function", check)


def decoding(part: Part, loop: Any) -> Decoding:
    """See :attr:`paretone.setting.plan.LanguagePlan.decoding`."""
    found = part.make(loop)
    if not part.owner:
        return found
    if not hasattr(found, "__next__"):
        raise part.wrong(found, "a generator of cycles")
    return _cycles(part, found)


def _cycles(part: Part, found: Any) -> Decoding:
    ended = object()
    try:
        while True:
            with part.blamed():
                cycle = next(found, ended)
            if cycle is ended:
                return
            if not isinstance(cycle, Cycle):
                raise part.wrong(cycle, "a generator of paretone.sampling.autoregressive.Cycle")
            yield cycle
    finally:
        if hasattr(found, "close"):
            found.close()


def products(part: Part, own: Network) -> Network:
    """See :attr:`paretone.setting.plan.LanguagePlan.products`; ``own`` is a language model's network."""
    found: Network = part.make(own)
    if part.owner and not isinstance(found, type(own)):
        raise part.wrong(found, "a TokenModel")
    return found


# --- Masked models ----------------------------------------------------------------------------------------------------
def schedule(part: Part, cells: int, steps: int) -> Schedule:
    """See :attr:`paretone.setting.plan.MaskedPlan.schedule`."""
    decide = _function(part, part.make(cells, steps), "a function (open cells) for the number of codes")

    def count(there: Open) -> int:
        found = decide(there)
        try:
            whole = index(found)
        except (TypeError, RuntimeError):
            whole = 0
        if isinstance(found, bool) or not 1 <= whole <= there.cells:
            raise part.wrong(found, f"a whole number from 1 to the {there.cells} cells that are left")
        return whole

    return count


def masked_run(part: Part, network: FusedMasked, request: MaskedRequest, guidance: float) -> CanvasRun:
    """See :attr:`paretone.setting.plan.MaskedPlan.run`."""

    def check_scores(found: object, codes: Tensor, first: int, last: int, guide: Guide) -> None:
        shape = len(codes), last - first, network.config.mask + 1
        _require_shape(part, found, shape, "scores of all codes")

    def check_rows(found: object, guide: Guide) -> None:
        if not isinstance(found, int | float) or not 0 < found < math.inf:
            raise part.wrong(found, "a number of rows above 0")

    checks = {
        "normalised": None,
        "scores": check_scores,
        "operations": None,
        "begin_block": None,
        "rows_of": check_rows,
        "rows_of_last": check_rows,
    }
    return _held(part, part.make(network, request, guidance), "a CanvasRun", checks)


# --- Checking a plug-in's results -------------------------------------------------------------------------------------
def _require_shape(part: Part, found: object, shape: Sequence[int], what: str, kind: torch.dtype | None = None) -> None:
    """``kind``: the required type; ``None``: any floating-point type."""
    is_right = isinstance(found, Tensor) and found.shape == torch.Size(shape) and found.is_floating_point()
    if not is_right or (kind is not None and isinstance(found, Tensor) and found.dtype != kind):
        of = f"of {str(kind).removeprefix('torch.')}" if kind is not None else "with floating point"
        raise part.wrong(found, f"{what}, a Tensor of shape {tuple(shape)} {of}")


def _function(part: Part, found: Any, wanted: str, check: Check | None = None) -> Any:
    """``found`` as the function that ``wanted`` describes; a plug-in's is checked at every call."""
    if not part.owner:
        return found
    if not callable(found):
        raise part.wrong(found, wanted)

    def held(*given: Any) -> Any:
        with part.blamed():
            result = found(*given)
        if check is not None:
            check(result, *given)
        return result

    return held


def _held(part: Part, found: Any, wanted: str, checks: Mapping[str, Check | None]) -> Any:
    """``found``, which needs the attributes in ``checks``; a plug-in's methods are checked at every call."""
    if not part.owner:
        return found
    missing = [name for name in checks if not hasattr(found, name)]
    if missing:
        raise part.wrong(found, f"{wanted}, which has {listed(missing)}")
    return _Held(part, found, checks)


class _Held:
    """A plug-in's object with checked methods."""

    def __init__(self, part: Part, thing: Any, checks: Mapping[str, Check | None]) -> None:
        self._part, self._thing, self._checks = part, thing, checks

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Type of the wrapped object, for ``isinstance``."""
        return type(self._thing)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._thing, name)
        if name not in self._checks or not callable(value):
            return value
        return _function(self._part, value, name, self._checks[name])
