"""Iterative demasking: each step fills the cells of a masked canvas whose codes are most confident.

A canvas has a row per codebook and a column per frame. In each step the network scores every code of the current block.
The most likely code of each cell is its candidate; the cells with the most likely candidates are committed, first
codebooks first (a penalty on every further one). Committed codes never change. By default, only the *cells* are random.

The loop reads no result: the number of commits per step is known beforehand, so the loop runs ahead of a GPU.

Source: k2-fsa/OmniVoice, ``omnivoice/models/omnivoice.py`` (guidance among log-probabilities, schedule, penalty, both
temperatures). There, random numbers come from torch's global generator; here each request has its own.
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

from paretone.observer import Check
from paretone.sampling.demasking_schedule import Block, CommitPlan

TOP_SHARE = 0.1
"""Share of a codebook's most likely codes to sample from, with a class temperature."""
SMALLEST = 1e-10
"""Keeps logarithms of uniform numbers finite, as upstream."""


class Guide(Enum):
    """Guidance of one step."""

    BOTH = "both"
    """Compute conditional and unconditional scores."""
    REUSED = "reused"
    """Compute conditional scores only; reuse the last computed difference."""
    ALONE = "alone"
    """Conditional scores alone."""


@dataclass(frozen=True)
class Rules:
    guidance: float = 2.0
    """Strength g: log-probabilities are c + g (c − u), normalised again."""
    shift: float = 0.1
    layer_penalty: float = 5.0
    """Penalty on a candidate's log-probability per codebook before its own."""
    position_temperature: float = 5.0
    """Randomness of the choice of cells to commit; 0: none."""
    class_temperature: float = 0.0
    """Randomness of the choice of codes; 0: none."""


class Predictor(Protocol):
    normalised: bool
    """Whether the scores are log-probabilities already."""

    def scores(self, codes: Tensor, first: int, last: int, guide: Guide) -> Tensor:
        """Guided scores (codebooks, last − first, entries) of the frames from ``first`` to ``last`` of ``codes``
        (codebooks, frames): log-probabilities up to a constant per cell. The last entry is the mask."""


class CanvasRun(Predictor, Protocol):
    """All passes of a network over one canvas: the result of :attr:`paretone.setting.plan.MaskedPlan.run`. Most easily
    a subclass of :class:`paretone.models.kernels.fused_masked.MaskedRun`, which computes whole passes; the roofline
    profiles only such subclasses."""

    operations: float
    """Matrix and attention products of all passes so far; see
    :meth:`paretone.models.kernels.fused_masked.MaskedRequest.operations`."""

    def begin_block(self) -> None:
        """Called before the first pass of every block but the first: values kept between passes may be stale."""

    def rows_of(self, guide: Guide) -> int:
        """Mean number of rows that a pass with this guidance computes: the prompt's and the canvas's, of both branches.
        Predicts the number of steps that fit before playback would pause."""

    def rows_of_last(self, guide: Guide) -> int:
        """Number of rows of the last pass, which had this guidance."""


@dataclass(frozen=True)
class Open:
    """Cells that a step may commit, as input of a :data:`Schedule`."""

    cells: int
    planned: int
    """Number of codes that the model's own schedule commits at this step."""
    steps: int
    """Number of remaining steps, this one included; the last one commits everything."""
    _scores: Callable[[], Tensor]

    @cached_property
    def log_probabilities(self) -> Tensor:
        """Guided log-probabilities (cells, codes) of each masked cell, in order. On a GPU, reading them waits."""
        return self._scores().log_softmax(dim=-1)


Schedule = Callable[[Open], int]
"""Number of codes to commit at a step: from 1 to all masked cells. Called at each step of a block but its last."""


class CanvasNoise(Protocol):
    """All random numbers of one canvas."""

    def positions(self, step: int, codebooks: int, frames: int) -> Tensor:
        """Uniform numbers (codebooks, frames) in [0, 1) for the choice of cells."""

    def classes(self, step: int, codebooks: int, frames: int, entries: int) -> Tensor:
        """Uniform numbers (codebooks, frames, entries) in [0, 1) for the choice of codes."""


class SeededCanvasNoise:
    """Random numbers of one request, drawn on the CPU so that a seed gives the same on every device."""

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
        """Step, from 0, that committed each code; −1: still masked."""
        self.probability = torch.zeros(codebooks, frames, device=device)
        """Probability of each code when it was committed, after guidance."""

    @property
    def codebooks(self) -> int:
        return len(self.codes)

    @property
    def frames(self) -> int:
        return self.codes.shape[1]


def gumbel(uniform: Tensor) -> Tensor:
    return -torch.log(-torch.log(uniform + SMALLEST) + SMALLEST)


def candidates(
    scores: Tensor, rules: Rules, uniform: Callable[[], Tensor], *, normalised: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Choose a code per cell from scores (codebooks, frames, entries), the mask last. Return the codes, their
    log-probabilities and those of each cell's most likely code, each (codebooks, frames). ``uniform`` gives random
    numbers of the scores' shape if needed."""
    scores = scores.float()
    # The mask cannot be chosen but keeps its probability: upstream removes it after the normalisation.
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
    """Confidence by which cells are committed, from log-probabilities of their likeliest codes, (codebooks, frames)."""
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
    check: Check = lambda: None,
    still: Callable[[int], int] | None = None,
    schedule: Schedule | None = None,
) -> Iterator[int]:
    """Fill ``block`` of ``canvas``; yield the number of each step, from ``first_step``, after its commits.

    Skips steps that would commit nothing, at the end of a short block; upstream computes their scores but does not use
    them. ``check`` is called before every step and may raise. ``still`` is called before every step but the first with
    the number of steps done in this block and returns the most that may follow; if fewer than planned, those commit the
    rest. ``schedule`` decides the number of codes per step, within the same number of steps.
    """
    frames = slice(block.start, block.end)
    codes, order, probability = (one[:, frames] for one in (canvas.codes, canvas.order, canvas.probability))
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
    """Ask ``schedule`` for the number of codes at the first of ``steps``, ``planned`` until now; update ``plan``."""
    cells = planned + plan.left

    def in_order() -> Tensor:
        return scores[..., :-1].flatten(0, 1)[sure.flatten().topk(cells).indices].float()

    count = schedule(Open(cells, planned, steps, in_order)) if steps > 1 else cells
    plan.instead(planned, count)
    return count
