"""That training learns: its losses against those of the same steps at a learning rate of zero. And that a run which was
resumed ends with the same bits as one that was not.

No bound is a figure that some processor once gave. Rounding (float32 against bfloat16) moves the losses of these small
models by up to 0.7 %, learning by 9 % at least, whatever the seed: :data:`SHARE` lies between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretone.training.session import Budget, Recipe, TrainingSession

SHARE = 0.03
"""Of a loss: what must be gained at least."""
RATES = ("learning_rate", "matrix_rate", "other_rate")


@dataclass(frozen=True)
class Run:
    """Validations before and after some steps, and the losses of each step."""

    recipe: Any
    before: Mapping[str, float]
    after: Mapping[str, float]
    losses: tuple[Mapping[str, float], ...]


@dataclass(frozen=True)
class Learning:
    """A run, and its control: the same problems in the same order, at a rate of zero."""

    taught: Run
    control: Run

    def assert_validation_falls(self, *names: str) -> None:
        """On held-out speech, each loss of ``names`` ends clearly below its beginning and below the control's end."""
        for name in names:
            before, after = self.taught.before[name], self.taught.after[name]
            least = min(before, self.control.after[name])
            assert after < (1 - SHARE) * least, (
                f"{name} is {after:.4g} after {before:.4g}, without learning {least:.4g}"
            )

    def assert_losses_fall(self, *names: str) -> None:
        """In the last steps, each loss of ``names`` is clearly below the control's on the same problems."""
        for name in names:
            taught, control = (np.mean([one[name] for one in run.losses[-5:]]) for run in (self.taught, self.control))
            assert taught < (1 - SHARE) * control, f"{name} is {taught:.4g}, without learning {control:.4g}"


def learning(make: Callable[[Any], Any], options: Any, steps: int, progress: Callable[[int], float]) -> Learning:
    """Train what ``make`` makes of ``options`` for ``steps``, and its control; ``progress`` is the share of the budget
    at a step."""

    def run(chosen: Any) -> Run:
        recipe = make(chosen)
        before = recipe.validate()
        losses = tuple(recipe.step(number, progress(number)) for number in range(1, steps + 1))
        return Run(recipe, before, recipe.validate(), losses)

    rates = [one.name for one in fields(options) if one.name in RATES and getattr(options, one.name)]
    assert rates, "these options have no learning rate"
    return Learning(run(options), run(replace(options, **dict.fromkeys(rates, 0.0))))


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
