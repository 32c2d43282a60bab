"""A sampling run's evaluations as CUDA graphs: what is left of the time when launching kernels costs nothing."""

from __future__ import annotations

from dataclasses import fields

import torch
from torch import Tensor

from engine.models.f5.dit import Conditioning, DiT
from engine.sampling.guidance import guided_velocity

WARM_UPS = 3


class EvaluationGraphs:
    """One graph for every evaluation of a schedule, recorded once, for runs of one shape.

    Recording is preparation, and no part of a run.
    """

    def __init__(self, backbone: DiT, run: Conditioning, state: Tensor, guidance: float) -> None:
        self._run, self._state = run, state.clone()
        self._graphs: list[torch.cuda.CUDAGraph] = []
        self._velocities: list[Tensor] = []

        def velocity(evaluation: int) -> Tensor:
            return guided_velocity(backbone.velocity(self._state, evaluation, run), guidance)

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                velocity(0)
        torch.cuda.current_stream().wait_stream(stream)
        for evaluation in range(len(run.modulations)):
            graph = torch.cuda.CUDAGraph()
            # One pool for all: each velocity is used up before the next graph overwrites it.
            with torch.cuda.graph(graph, pool=self._graphs[0].pool() if self._graphs else None):
                self._velocities.append(velocity(evaluation))
            self._graphs.append(graph)

    def begin(self, run: Conditioning) -> None:
        """Take over what a new run's evaluations share."""
        for one in fields(run):
            mine, new = getattr(self._run, one.name), getattr(run, one.name)
            for target, source in zip(_tensors(mine), _tensors(new), strict=True):
                target.copy_(source)

    def velocity(self, state: Tensor, evaluation: int) -> Tensor:
        """The guided velocity. The next call overwrites it."""
        self._state.copy_(state)
        self._graphs[evaluation].replay()
        return self._velocities[evaluation]


def _tensors(value: object) -> tuple[Tensor, ...]:
    values = value if isinstance(value, tuple) else (value,)
    return tuple(one for one in values if isinstance(one, Tensor))
