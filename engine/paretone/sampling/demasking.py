"""Iterative demasking: a canvas of masked codes is filled in, at each step with the codes of which the model is most
confident.

A canvas has a row of codes for every codebook and a column for every frame. In each step the network scores every code
of the block that is being filled in; of each cell the most likely code is a candidate, and the cells whose candidates
are most likely are committed, first codebooks first (a penalty on every further one). Nothing that was committed is
changed. Only *which* cells are committed is random by default.

No result is looked at on the way: how many cells each step commits is known beforehand, so on a GPU the loop
runs ahead of the device.

Source: k2-fsa/OmniVoice, ``omnivoice/models/omnivoice.py`` (guidance among log-probabilities, schedule, penalty, both
temperatures). There, chance comes from torch's global generator; here a request has its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from typing import Protocol

import torch
from torch import Tensor

from paretone.sampling.demasking_schedule import Block, CommitPlan

TOP_SHARE = 0.1
"""Share of a codebook that codes are sampled from, if they are sampled."""
SMALLEST = 1e-10
"""Keeps logarithms of uniform numbers finite, as upstream."""


class Guide(Enum):
    """Guidance of one step."""

    BOTH = "both"
    """Conditional and unconditional scores are computed."""
    REUSED = "reused"
    """Only conditional ones are computed; the last computed difference is reused."""
    ALONE = "alone"
    """The conditional ones alone."""


@dataclass(frozen=True)
class Rules:
    guidance: float = 2.0
    """Strength g: log-probabilities are c + g (c − u), normalised again."""
    shift: float = 0.1
    layer_penalty: float = 5.0
    """Penalty on a candidate's log-probability per codebook before its own."""
    position_temperature: float = 5.0
    """Randomness of the choice of committed cells; 0: none."""
    class_temperature: float = 0.0
    """Randomness of the choice of codes; 0: none."""


class Predictor(Protocol):
    normalised: bool
    """Whether its scores are log-probabilities already."""

    def scores(self, codes: Tensor, first: int, last: int, guide: Guide) -> Tensor:
        """Scores (codebooks, last − first, entries) of the frames from ``first`` to ``last`` of ``codes`` (codebooks,
        frames), guided: log-probabilities, or what differs from them by a constant in each cell. The last entry is the
        mask."""


class CanvasRun(Predictor, Protocol):
    """All passes of a network over one canvas: what :attr:`paretone.setting.plan.MaskedPlan.run` returns. The easiest
    way to one is to derive from :class:`paretone.models.kernels.fused_masked.MaskedRun`, which computes whole passes;
    the roofline takes only such ones apart."""

    operations: float
    """Matrix and attention products of all passes so far; see
    :meth:`paretone.models.kernels.fused_masked.MaskedRequest.operations`."""

    def begin_block(self) -> None:
        """Called before the first pass of every block but the first: what is kept between passes may have changed."""

    def rows_of(self, guide: Guide) -> int:
        """Mean number of rows that the network computes in a pass that is guided so: the prompt's and the canvas's, of
        both branches. It plans how many steps fit before playback would pause."""

    def rows_of_last(self, guide: Guide) -> int:
        """Number of rows of the last pass, which was guided so."""


@dataclass(frozen=True)
class Open:
    """The cells that a step may commit, as a :data:`Schedule` sees them."""

    cells: int
    """Their number."""
    planned: int
    """Number of codes that the model's own schedule commits at this step."""
    steps: int
    """Number of steps that are left, this one included; the last one commits everything."""
    _scores: Callable[[], Tensor]

    @cached_property
    def log_probabilities(self) -> Tensor:
        """Log-probabilities (cells, codes) of the codes of each cell that is still masked, after guidance; the cells in
        the order in which they would be committed. On a GPU, reading them waits for the pass."""
        return self._scores().log_softmax(dim=-1)


Schedule = Callable[[Open], int]
"""How many codes a step commits, of the cells that are still masked: at least 1, at most all of them. Called once per
step of a block but its last, in order."""


class CanvasNoise(Protocol):
    """All random numbers of one canvas."""

    def positions(self, step: int, codebooks: int, frames: int) -> Tensor:
        """Uniform numbers (codebooks, frames) in [0, 1) that decide which cells are committed."""

    def classes(self, step: int, codebooks: int, frames: int, entries: int) -> Tensor:
        """Uniform numbers (codebooks, frames, entries) in [0, 1) that decide which codes they get."""


class SeededCanvasNoise:
    """The random numbers of one request. They are drawn on the processor, so that a seed gives the same ones on every
    device."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._device = device

    def positions(self, step: int, codebooks: int, frames: int) -> Tensor:
        return self._uniform(codebooks, frames)

    def classes(self, step: int, codebooks: int, frames: int, entries: int) -> Tensor:
        return self._uniform(codebooks, frames, entries)

    def _uniform(self, *shape: int) -> Tensor:
        drawn = torch.rand(shape, generator=self._generator)
        if self._device.type != "cuda":
            return drawn.to(self._device)
        # From pinned memory, a copy to the GPU does not wait for running kernels.
        return drawn.pin_memory().to(self._device, non_blocking=True)


class Canvas:
    """A canvas being filled in. All tensors are (codebooks, frames)."""

    def __init__(self, codebooks: int, frames: int, mask: int, device: torch.device) -> None:
        self.mask = mask
        self.codes = torch.full((codebooks, frames), mask, device=device)
        self.order = torch.full((codebooks, frames), -1, dtype=torch.int16, device=device)
        """The step, from 0, that committed each code; −1: none has yet."""
        self.probability = torch.zeros(codebooks, frames, device=device)
        """Probability of each code when it was committed, after guidance."""

    @property
    def codebooks(self) -> int:
        return len(self.codes)

    @property
    def frames(self) -> int:
        return self.codes.shape[1]


def gumbel(uniform: Tensor) -> Tensor:
    """Gumbel noise from uniform numbers."""
    return -torch.log(-torch.log(uniform + SMALLEST) + SMALLEST)


def candidates(
    scores: Tensor, rules: Rules, uniform: Callable[[], Tensor], *, normalised: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """From scores (codebooks, frames, entries), the mask last: the code of each cell, its log-probability, and the
    log-probability of the cell's most likely one, each (codebooks, frames). ``uniform`` gives random numbers of the
    scores' shape if they are needed."""
    scores = scores.float()
    # The mask cannot be chosen, but its probability is not given to others: upstream removes it
    # after the normalisation.
    eligible = scores[..., :-1]
    best, code = eligible.max(dim=-1)
    total = 0.0 if normalised else scores.logsumexp(dim=-1)
    if rules.class_temperature <= 0:
        return code, best - total, best - total
    kept, codes = eligible.topk(math.ceil(TOP_SHARE * scores.shape[-1]), dim=-1)
    drawn = kept / rules.class_temperature + gumbel(uniform().gather(-1, codes))
    place = drawn.argmax(dim=-1, keepdim=True)
    return codes.gather(-1, place)[..., 0], kept.gather(-1, place)[..., 0] - total, best - total


def confidence(likeliest: Tensor, rules: Rules, uniform: Callable[[], Tensor]) -> Tensor:
    """Confidence of each cell, which decides the order of committing, from the log-probability of its most likely code,
    (codebooks, frames)."""
    codebook = torch.arange(len(likeliest), device=likeliest.device)[:, None]
    sure = likeliest - codebook * rules.layer_penalty
    if rules.position_temperature > 0:
        sure = sure / rules.position_temperature + gumbel(uniform())
    return sure


@torch.inference_mode()
def demask(
    predictor: Predictor,
    canvas: Canvas,
    block: Block,
    rules: Rules,
    noise: CanvasNoise,
    first_step: int = 0,
    guide: Callable[[int], Guide] = lambda step: Guide.BOTH,
    check: Callable[[], None] = lambda: None,
    still: Callable[[int], int] | None = None,
    schedule: Schedule | None = None,
) -> Iterator[int]:
    """Fill in ``block`` of ``canvas``: yields the number of each step, from ``first_step``, when its codes are there.

    Steps that would commit nothing, at the end of a short block, are left out; the scores that upstream computes there
    are not used. ``check`` is called before every step; what it raises is passed on. ``still`` is asked before every
    step but the first, with the number of those that were done in this block, how many more there may be: where it says
    fewer than were planned, the rest is committed in as many. ``schedule`` decides how many codes each step commits;
    the number of steps stays the greatest that there may be.
    """
    codes, order, probability = (
        one[:, block.start : block.end] for one in (canvas.codes, canvas.order, canvas.probability)
    )
    plan, step = CommitPlan(codes.numel(), block.steps, rules.shift), first_step
    end = first_step + block.steps
    while plan.steps:
        check()
        if still is not None and step > first_step:
            further = still(step - first_step)
            plan.shorten(further)
            end = min(end, step + max(further, 1))
        count = plan.next()
        scores = predictor.scores(canvas.codes, block.start, block.end, guide(step))
        code, log_probability, likeliest = candidates(
            scores, rules, partial(noise.classes, step, *scores.shape), normalised=predictor.normalised
        )
        sure = confidence(likeliest, rules, partial(noise.positions, step, *codes.shape))
        sure = sure.masked_fill(codes != canvas.mask, -math.inf)
        if schedule is not None:
            count = _decided(schedule, plan, count, end - step, scores, sure)
        places = sure.flatten().topk(count).indices
        row, column = places // block.frames, places % block.frames
        codes[row, column] = code.flatten()[places]
        probability[row, column] = log_probability.flatten()[places].exp()
        order[row, column] = step
        yield step
        step += 1


def _decided(schedule: Schedule, plan: CommitPlan, planned: int, steps: int, scores: Tensor, sure: Tensor) -> int:
    """Number of codes that ``schedule`` commits at the first of the ``steps`` that are left, where ``plan`` would
    commit ``planned``; changes the plan accordingly."""
    cells = planned + plan.left

    def in_order() -> Tensor:
        places = sure.flatten().topk(cells).indices
        return scores[..., :-1].flatten(0, 1)[places].float()

    count = schedule(Open(cells, planned, steps, in_order)) if steps > 1 else cells
    plan.instead(planned, count)
    return count
