"""Targets that several steps learn from: working one out costs several times as much as a step that learns from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch

Target = TypeVar("Target")


@dataclass
class _Kept(Generic[Target]):
    target: Target
    left: int
    """Steps that are still to learn from it."""


@dataclass
class TargetsInUse(Generic[Target]):
    """Hands out each target ``uses`` times, in between others.

    Nothing of it is in a checkpoint: a resumed run begins with new targets.
    """

    uses: int
    generator: torch.Generator
    most: int = 32
    """How many are kept at a time."""
    _kept: list[_Kept[Target]] = field(default_factory=list)

    def next(self, work_out: Callable[[], Target]) -> Target:
        """One to learn from now: a new one of ``work_out`` as long as few are kept, then one of those."""
        if self.uses == 1:
            return work_out()
        if len(self._kept) < self.most:
            self._kept.append(_Kept(work_out(), self.uses - 1))
            return self._kept[-1].target
        number = int(torch.randint(len(self._kept), (), generator=self.generator))
        chosen = self._kept[number]
        chosen.left -= 1
        if not chosen.left:
            self._kept[number] = self._kept[-1]
            self._kept.pop()
        return chosen.target
