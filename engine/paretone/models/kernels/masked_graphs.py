"""Steps of masked models recorded as CUDA graphs, by length bucket; see :mod:`paretone.models.kernels.graphs`.

The rows before the canvas, the canvas, and the frames that are filled in are each rounded up to the bucket. Padded rows
are attended to by none; which frames are filled in is read from fixed memory. So passages, blocks and texts of
different lengths share a recording, and results are equal to rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paretone.models.kernels.fused_masked import FusedMasked, MaskedRun
from paretone.models.kernels.graphs import GraphCache, Record
from paretone.models.kernels.masked_rows import MaskedRequest, Rows
from paretone.sampling.demasking import Guide


@dataclass(frozen=True)
class Sizes:
    """Sizes of a recording: rows before the canvas, frames of it, and scored frames."""

    prefix: int
    frames: int
    scored: int

    def up_to(self, bucket: int) -> Sizes:
        """Each rounded up to a multiple of ``bucket``."""
        return Sizes(*(math.ceil(one / bucket) * bucket for one in (self.prefix, self.frames, self.scored)))


class GraphedRun(MaskedRun):
    """A masked network on one canvas, its steps recordings."""

    def __init__(
        self,
        network: FusedMasked,
        request: MaskedRequest,
        guidance: float,
        cache: GraphCache[_DemaskingStep],
        bucket: int,
    ) -> None:
        super().__init__(network, request, guidance)
        self._cache, self._bucket = cache, bucket

    @torch.inference_mode()
    def scores(self, codes: Tensor, first: int, last: int, guide: Guide) -> Tensor:
        possible = self._possible(guide, first, last)
        exact = Sizes(self._request.prefix, self._request.frames, last - first)
        sizes, branches = exact.up_to(self._bucket), 2 if possible is Guide.BOTH else 1
        found = self._cache.find(
            ("masked", id(self._network), sizes, possible, self._guidance, self._bucket > 1),
            lambda: _DemaskingStep(self, sizes, possible, self._cache.record, masked=self._bucket > 1),
            f"a step with {sizes.prefix + branches * sizes.frames} rows",
        )
        if found is None:
            return super().scores(codes, first, last, guide)
        self._count(last - first, possible)
        scores, difference = found.scores(self, codes, first, last)
        if difference is not None:
            self._difference = (first, last), difference
        return scores


def with_graphs(network: FusedMasked, cache: GraphCache[_DemaskingStep], bucket: int) -> FusedMasked:
    """``network``, whose steps are recordings of lengths in multiples of ``bucket``."""
    return network.beginning(lambda request, guidance: GraphedRun(network, request, guidance, cache, bucket))


class _PaddedRun(MaskedRun):
    """A canvas with room for any that is no longer, whose contents are copied in."""

    def __init__(self, like: GraphedRun, sizes: Sizes, *, masked: bool) -> None:
        request, device = like._request, like._network.device
        padding = request.text.new_zeros(sizes.prefix)
        super().__init__(like._network, MaskedRequest(padding, request.reference[:, :0], sizes.frames), like._guidance)
        self._seen = torch.zeros(1, sizes.prefix + sizes.frames, dtype=torch.bool, device=device)
        self._places = torch.arange(sizes.scored, device=device)
        if masked:
            seen = self._seen, self._seen[:, sizes.prefix :]
            self._guided, self._unguided = (
                replace(rows, seen=seen[: len(rows.parts)]) for rows in (self._guided, self._unguided)
            )

    def wanted(self, rows: Rows, first: int, last: int) -> tuple[Tensor, ...]:
        # A row after the frames of its branch would be another branch's.
        frames = self._request.frames
        places = self._places.clamp(max=frames - 1)
        return tuple(places + (part.stop - part.start - frames) for part in rows.parts)

    def take_over(self, run: MaskedRun) -> None:
        """Copy in what all steps of ``run`` share."""
        prefix, frames, room = run._request.prefix, run._request.frames, self._request.prefix
        self._seen[:, :prefix] = True
        self._seen[:, prefix:room] = False
        self._seen[:, room : room + frames] = True
        self._seen[:, room + frames :] = False
        for target, source in zip(
            (self._prefix, *self._prefix_projected), (run._prefix, *run._prefix_projected), strict=True
        ):
            target[:prefix].copy_(source)
        for mine, theirs in ((self._guided, run._guided), (self._unguided, run._unguided)):
            for target, source in ((mine.cosines, theirs.cosines), (mine.sines, theirs.sines)):
                target[:prefix].copy_(source[:prefix])
                for part, other in zip(mine.parts, theirs.parts, strict=True):
                    start = part.stop - self._request.frames
                    target[start : start + frames].copy_(source[other.stop - frames : other.stop])

    def look_at(self, first: int) -> None:
        """Score the frames from ``first`` on."""
        torch.arange(first, first + len(self._places), out=self._places)


class _DemaskingStep:
    """The recording of one step."""

    def __init__(self, run: GraphedRun, sizes: Sizes, guide: Guide, record: Record, *, masked: bool) -> None:
        config = run._network.config
        self._static = _PaddedRun(run, sizes, masked=masked)
        self._codes = torch.full((config.codebooks, sizes.frames), config.mask, device=run._network.device)
        self._owner: GraphedRun | None = None
        self._take_over(run)
        self._guide = guide
        if guide is Guide.REUSED:
            found = run._last_difference()
            self._static._difference = (0, sizes.scored), found.new_zeros(sizes.scored, found.shape[1])
        self._replay, self._output = record(lambda: self._static.scores(self._codes, 0, sizes.scored, guide))

    def scores(self, run: GraphedRun, codes: Tensor, first: int, last: int) -> tuple[Tensor, Tensor | None]:
        """Scores, and what guidance found if it was computed."""
        if run is not self._owner:
            self._take_over(run)
        frames = min(codes.shape[1], self._codes.shape[1])
        self._codes[:, :frames].copy_(codes[:, :frames])
        self._static.look_at(first)
        scored, difference = last - first, None
        if self._guide is Guide.REUSED:
            self._static._last_difference()[:scored].copy_(run._last_difference())
        self._replay()
        if self._guide is Guide.BOTH:
            difference = self._static._last_difference()[:scored].clone()
        return self._output[:, :scored], difference

    def _take_over(self, run: GraphedRun) -> None:
        self._owner = run
        self._static.take_over(run)
