"""The demasking loop: what it commits when, within which frames, and what it never looks at."""

import itertools
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from paretone.sampling.demasking import Canvas, Guide, Open, Rules, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block, CommitPlan, block_bounds, commit_counts

CPU = torch.device("cpu")
ENTRIES, MASK = 9, 8
READ_BACK = {"aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::masked_select", "aten::equal"}
"""Operators that bring a number from a graphics card to the processor, and so wait for it."""


class Scorer:
    """Fixed random scores, and what was asked for."""

    normalised = False

    def __init__(self, codebooks: int, frames: int) -> None:
        self._scores = torch.randn(codebooks, frames, ENTRIES, generator=torch.Generator().manual_seed(0))
        self.asked: list[tuple[int, int, Guide]] = []

    def scores(self, codes: Tensor, first: int, last: int, guide: Guide) -> Tensor:
        self.asked.append((first, last, guide))
        return self._scores[:, first:last]


def filling(
    block: Block, rules: Rules = Rules(), frames: int = 12, seed: int = 0, **more: object
) -> tuple[Iterator[int], Canvas, Scorer]:
    canvas, scorer = Canvas(3, frames, MASK, CPU), Scorer(3, frames)
    return demask(scorer, canvas, block, rules, SeededCanvasNoise(seed, CPU), **more), canvas, scorer


def filled(block: Block, rules: Rules = Rules(), frames: int = 12, seed: int = 0) -> tuple[Canvas, Scorer]:
    steps, canvas, scorer = filling(block, rules, frames, seed)
    list(steps)
    return canvas, scorer


def test_steps_commit_what_the_schedule_says_and_nothing_else_changes() -> None:
    canvas, _ = filled(Block(0, 12, 5))
    assert tuple(int((canvas.order == step).sum()) for step in range(5)) == commit_counts(36, 5, 0.1)
    assert (canvas.codes < MASK).all() and ((canvas.probability > 0) & (canvas.probability < 1)).all()
    canvas, scorer = filled(Block(4, 9, 3))
    assert set(scorer.asked) == {(4, 9, Guide.BOTH)}
    outside = [*range(4), *range(9, 12)]
    assert (canvas.codes[:, outside] == MASK).all() and (canvas.order[:, outside] == -1).all()
    assert (canvas.codes[:, 4:9] < MASK).all()
    steps, canvas, _ = filling(Block(0, 12, 6))
    before = canvas.codes.clone()
    for _ in steps:
        known = before != MASK
        assert torch.equal(canvas.codes[known], before[known])
        before = canvas.codes.clone()
    canvas, scorer = filled(Block(0, 1, 32), frames=1)
    assert sum(commit_counts(3, 32, 0.1)) == 3
    assert len(scorer.asked) == 3
    assert (canvas.order >= 0).all()


def test_a_schedule_decides_how_many_codes_a_step_commits() -> None:
    """The last step that there may be takes the rest."""
    for counts, committed in (([1, 2, 3, 4], [1, 2, 3, 4, 26]), ([30, 6], [30, 6])):
        seen: list[Open] = []
        wanted = iter(counts)
        steps, canvas, _ = filling(
            Block(0, 12, 5), schedule=lambda there, seen=seen, wanted=wanted: seen.append(there) or next(wanted)
        )
        assert [int((canvas.order == step).sum()) for step in steps] == committed
        assert [one.steps for one in seen] == list(range(5, 5 - len(seen), -1))
        assert [one.cells for one in seen] == [36 - sum(committed[:step]) for step in range(len(seen))]
        assert seen[0].planned == commit_counts(36, 5, 0.1)[0]


def test_a_schedule_that_follows_the_plan_changes_nothing() -> None:
    for steps in (1, 30):
        plain, _ = filled(Block(0, 12, steps))
        same, canvas, _ = filling(Block(0, 12, steps), schedule=lambda there: there.planned)
        assert list(same) == list(range(int(plain.order.max()) + 1))
        assert torch.equal(canvas.codes, plain.codes) and torch.equal(canvas.order, plain.order)


def test_penalty_and_temperature_decide_what_comes_first() -> None:
    rules = Rules(position_temperature=0.0)
    first, second = (filled(Block(0, 12, 4), rules, seed=seed)[0] for seed in (1, 2))
    assert torch.equal(first.order, second.order)
    first, second = (filled(Block(0, 12, 4), seed=seed)[0] for seed in (1, 2))
    assert not torch.equal(first.order, second.order) and torch.equal(first.codes, second.codes)
    canvas, _ = filled(Block(0, 12, 6), Rules(layer_penalty=100.0))
    for number in range(2):
        assert canvas.order[number].max() <= canvas.order[number + 1].min()


def test_each_step_is_guided_as_asked() -> None:
    guides = [Guide.BOTH, Guide.REUSED, Guide.ALONE, Guide.BOTH]
    steps, _, scorer = filling(Block(0, 12, 4), first_step=10, guide=lambda step: guides[step - 10])
    assert list(steps) == [10, 11, 12, 13]
    assert [guide for *_, guide in scorer.asked] == guides


class Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.name())
        return func(*args, **(kwargs or {}))


def test_no_result_is_looked_at_on_the_way() -> None:
    steps, _, _ = filling(Block(0, 12, 4), Rules(class_temperature=0.5))
    with Recorder() as recorder:
        list(steps)
    assert "aten::topk" in recorder.names and not recorder.names & READ_BACK


@pytest.mark.parametrize("frames", [1, 17, 251])
@pytest.mark.parametrize(("size", "first"), [(32, 0), (32, 16), (100, 6), (4, 24)])
def test_blocks_cover_the_canvas(frames: int, size: int, first: int) -> None:
    bounds = block_bounds(frames, size, first)
    assert bounds[0][0] == 0 and bounds[-1][1] == frames
    assert all(one[1] == following[0] for one, following in itertools.pairwise(bounds))
    lengths = [end - start for start, end in bounds]
    assert all(0 < length <= max(size, first) for length in lengths)
    if first:
        assert lengths[0] == min(first, frames)
    # Each is at most twice as long as the one before, until they have their size; these are nearly equal.
    grown = 1 if first else 0
    while first and grown < len(lengths) and lengths[grown] == 2 * lengths[grown - 1] < size:
        grown += 1
    assert all(following <= max(2 * one, first) for one, following in itertools.pairwise(lengths) if first)
    later = lengths[grown:]
    assert not later or max(later) - min(later) <= 1


@pytest.mark.parametrize(("at", "left"), [(1, 4), (5, 2), (11, 0)])
def test_what_is_left_goes_into_fewer_steps(at: int, left: int) -> None:
    plan = CommitPlan(192, 16, 0.1)
    before = [plan.next() for _ in range(at)]
    plan.shorten(left)
    assert plan.steps == max(left, 1)
    after = []
    while plan.steps:
        after.append(plan.next())
        plan.shorten(99)
    assert len(after) == max(left, 1) and all(after)
    assert sum(before) + sum(after) == 192 and tuple(before) == commit_counts(192, 16, 0.1)[:at]
    # It goes on where it was: first little, then more.
    assert after == sorted(after) or len(after) == 1


def test_a_block_is_cut_short_when_it_is_told_so() -> None:
    asked: list[int] = []

    def still(taken: int) -> int:
        asked.append(taken)
        return 2 if taken == 3 else 99

    steps, canvas, _ = filling(Block(0, 12, 8), first_step=10, still=still)
    assert list(steps) == [10, 11, 12, 13, 14]
    assert asked == [1, 2, 3, 4]
    assert (canvas.codes < MASK).all()
    whole, _ = filled(Block(0, 12, 8))
    # Until then nothing is different.
    assert torch.equal(canvas.order.clamp(max=12) - 10 == 0, whole.order == 0)
