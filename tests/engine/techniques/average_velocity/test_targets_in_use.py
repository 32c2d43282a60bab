"""Targets that several steps learn from."""

from __future__ import annotations

import itertools
from collections import Counter

import torch

from paretone.techniques.average_velocity.subjects import TargetsInUse


def _handed_out(uses: int, steps: int) -> tuple[list[int], int]:
    """Numbers of the targets of so many steps, and how many were worked out."""
    numbers = itertools.count()
    targets: TargetsInUse[int] = TargetsInUse(uses, torch.Generator().manual_seed(3), most=8)
    return [targets.next(lambda: next(numbers)) for _ in range(steps)], next(numbers)


def test_each_serves_as_many_steps_as_asked_in_between_others() -> None:
    found, made = _handed_out(4, 4000)
    assert max(Counter(found).values()) == 4
    assert made <= 4000 / 4 + 8, "of those kept at the end, some have steps left"
    repeated = sum(one == after for one, after in itertools.pairwise(found))
    assert repeated < 800, "rarely one after the other"


def test_used_once_each_is_new_and_nothing_is_drawn() -> None:
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    targets: TargetsInUse[int] = TargetsInUse(1, generator)
    numbers = itertools.count()
    assert [targets.next(lambda: next(numbers)) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert torch.equal(generator.get_state(), before)
