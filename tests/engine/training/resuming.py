"""That a run which was stopped and resumed ends with the same bits as one that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from paretone.training.session import Budget, Recipe, TrainingSession

STEPS = 6


def whole_and_resumed(make: Callable[[], Recipe], folder: Path) -> tuple[Any, Any]:
    """The recipe after six steps in one run, and after three steps, a stop and three more. The first run's work
    folder is ``whole`` in ``folder``."""

    def session(name: str) -> TrainingSession:
        return TrainingSession(make(), folder / name, Budget(steps=STEPS), report=lambda line: None)

    whole = session("whole")
    whole.begin(resume=False)
    assert whole.run()
    broken = session("broken")
    broken.begin(resume=False)
    for number in range(1, STEPS // 2 + 1):
        broken.recipe.step(number, (number - 1) / STEPS)
        broken.number = number
    broken.save()
    resumed = session("broken")
    resumed.begin(resume=True)
    assert resumed.run()
    return whole.recipe, resumed.recipe


def same_weights(ours: torch.nn.Module, theirs: torch.nn.Module) -> bool:
    """Whether all tensors of both are equal, bit by bit."""
    return all(map(torch.equal, ours.state_dict().values(), theirs.state_dict().values()))
