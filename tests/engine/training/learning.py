"""That training learns, that a run which was resumed ends with the same bits as one that was not, and what is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from paretone.training.requests import Follower, TrainingProgress
from paretone.training.session import Budget, Recipe, TrainingSession

SHARE = 0.03
"""Of a loss: what must be gained at least. Rounding moves the losses of these small models by up to 0.7 %, learning by
9 % at least, whatever the seed."""


def assert_learns(recipe: Any, steps: int, *names: str) -> None:
    """On held-out speech, each loss of ``names`` ends clearly below its beginning."""
    before = recipe.validate()
    for number in range(1, steps + 1):
        recipe.step(number, number / (steps + 1))
    after = recipe.validate()
    for name in names:
        assert after[name] < (1 - SHARE) * before[name], f"{name} is {after[name]:.4g} after {before[name]:.4g}"


class Recorder(Follower):
    """Remembers what it is told; ``at`` is called with every milestone."""

    def __init__(self, at: Callable[[TrainingProgress], None] = lambda milestone: None) -> None:
        self.lines: list[str] = []
        self.told: list[tuple[int, int]] = []
        self.seen: list[TrainingProgress] = []
        self.at = at

    def status(self, text: str) -> None:
        self.lines.append(text)

    def progress(self, done: int, total: int) -> None:
        self.told.append((done, total))

    def milestone(self, milestone: TrainingProgress) -> None:
        self.seen.append(milestone)
        self.at(milestone)


def exported(recipe: Any, folder: Path) -> Any:
    """``recipe`` after three steps, and its export in ``folder``."""
    for number in range(1, 4):
        recipe.step(number, 0.1)
    recipe.export(folder)
    return recipe


STEPS = 2


def whole_and_resumed(make: Callable[[], Recipe], folder: Path) -> tuple[Any, Any]:
    """The recipe after two steps in one run (in ``folder`` / ``whole``), and after a step, a stop and another."""

    def session(name: str, resume: bool = False) -> TrainingSession:
        made = TrainingSession(make(), folder / name, Budget(steps=STEPS), report=lambda line: None)
        made.begin(resume)
        return made

    whole = session("whole")
    assert whole.run()
    broken = session("broken")
    broken.recipe.step(1, 0.0)
    broken.number = 1
    broken.save()
    resumed = session("broken", resume=True)
    assert resumed.run()
    return whole.recipe, resumed.recipe


def same_weights(ours: torch.nn.Module, theirs: torch.nn.Module) -> bool:
    """Whether all tensors of both are equal, bit by bit."""
    return all(map(torch.equal, ours.state_dict().values(), theirs.state_dict().values()))
