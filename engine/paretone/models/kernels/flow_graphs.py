"""Evaluations of flow models recorded as CUDA graphs; see :mod:`paretone.models.kernels.graphs`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paretone.models.f5.unett import UNetT, UNetTConditioning
from paretone.models.kernels.compiled import times_of
from paretone.models.kernels.graphs import GraphCache, Record
from paretone.models.networks.diffusion import Conditioning, DiffusionTransformer
from paretone.sampling.operations import OperationCounts

FRAME_AXES = {"rotary": 0, "constant": 1, "to_sample": 1}
"""Along which axis of what a flow model's evaluations share its frames lie."""


class GraphedEvaluator:
    """Everything is computed, by recordings. See :class:`paretone.sampling.flow.Evaluator`."""

    def __init__(self, backbone: DiffusionTransformer | UNetT, cache: GraphCache[_Evaluation], bucket: int) -> None:
        self._backbone, self._cache = backbone, cache
        # The convolutions of E2-TTS would see what is padded: each of its lengths has its own graph.
        self._bucket = bucket if isinstance(backbone, DiffusionTransformer) else 1

    def velocities(self, state: Tensor, evaluation: int, run: Any) -> Tensor:
        length = state.shape[1]
        frames = math.ceil(length / self._bucket) * self._bucket
        key = "flow", id(self._backbone), run.branches, frames, state.shape[0], state.shape[2], self._bucket > 1
        found = self._cache.find(
            key,
            lambda: _Evaluation(self._backbone, self._cache.record, state, run, frames, masked=self._bucket > 1),
            f"an evaluation of {frames} frames in {run.branches} branch{'es' if run.branches > 1 else ''}",
        )
        if found is None:
            return self._backbone.velocity(state, evaluation, run)
        return found.velocities(state, evaluation, run)

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return counts.evaluation


class _Evaluation:
    """The recording of one evaluation."""

    def __init__(
        self,
        backbone: DiffusionTransformer | UNetT,
        record: Record,
        state: Tensor,
        run: Any,
        frames: int,
        *,
        masked: bool,
    ) -> None:
        # Recordings are found by what they are of, which must not go while they stay.
        self._of = backbone
        self._state = state.new_zeros(state.shape[0], frames, state.shape[2])
        rows = run.branches * len(state)
        mask = torch.ones(rows, frames, dtype=torch.bool, device=state.device) if masked else None
        changes = {
            name: _each(getattr(run, name), partial(_lengthened, axis=axis, more=frames - state.shape[1]))
            for name, axis in FRAME_AXES.items()
            if hasattr(run, name)
        }
        # What the backbone's own ``begin`` returns: the two kinds of backbone have nothing to do with each other's.
        self._run: Any = replace(
            run, mask=mask, **changes, **{name: one.clone() for name, one in times_of(run, 0).items()}
        )
        self._owner: Conditioning | UNetTConditioning | None = None
        self._take_over(run, state.shape[1])

        def evaluate() -> Tensor:
            with _padding_unseen(backbone):
                return backbone.velocity(self._state, 0, self._run)

        self._replay, self._output = record(evaluate)

    def velocities(self, state: Tensor, evaluation: int, run: Conditioning | UNetTConditioning) -> Tensor:
        length = state.shape[1]
        if run is not self._owner:
            self._take_over(run, length)
        self._state[:, :length].copy_(state)
        for name, one in times_of(run, evaluation).items():
            getattr(self._run, name).copy_(one)
        self._replay()
        return self._output[:, :length]

    def _take_over(self, run: Conditioning | UNetTConditioning, length: int) -> None:
        """Copy in what a new run's evaluations share."""
        self._owner = run
        self._state.zero_()
        if self._run.mask is not None:
            self._run.mask.copy_(torch.arange(self._run.mask.shape[1], device=self._run.mask.device) < length)
        for name, axis in FRAME_AXES.items():
            if hasattr(run, name):
                for target, source in zip(_parts(self._run, name), _parts(run, name), strict=True):
                    target.narrow(axis, 0, source.shape[axis]).copy_(source)


@contextlib.contextmanager
def _padding_unseen(backbone: DiffusionTransformer | UNetT) -> Iterator[None]:
    """Padded frames are not attended to, also in families that do so among items of different lengths: there, they are
    part of the official model, here they are none of it."""
    modules = [block.attention for block in backbone.blocks]
    for one in modules:
        one.attends_padding = False
    try:
        yield
    finally:
        for one in modules:
            del one.attends_padding


def _parts(run: Conditioning | UNetTConditioning, name: str) -> tuple[Tensor, ...]:
    value = getattr(run, name)
    return value if isinstance(value, tuple) else (value,)


def _each(value: Tensor | tuple[Tensor, ...], change: Callable[[Tensor], Tensor]) -> Tensor | tuple[Tensor, ...]:
    return tuple(map(change, value)) if isinstance(value, tuple) else change(value)


def _lengthened(value: Tensor, axis: int, more: int) -> Tensor:
    """A copy with ``more`` zeros after it."""
    shape = list(value.shape)
    shape[axis] = more
    return torch.cat([value, value.new_zeros(shape)], dim=axis)
