"""Running a recipe from its start, or its checkpoint, to the folder that ships."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from paretone.training.follower import Follower
from paretone.training.recipe import Recipe
from paretone.training.session import LOG, Budget, TrainingSession

EXPORT = "export"
"""Folder of the result, in the work folder."""


@dataclass(frozen=True)
class BundledModel:
    """A trained model: its export, steps and seconds."""

    folder: Path
    steps: int
    seconds: float
    validation: dict[str, float]


def run_recipe(
    recipe: Recipe, work: Path, budget: Budget, resume: bool, export: Path | None, follower: Follower
) -> BundledModel:
    """Train, and write the model with its log as it ships, to ``export`` or into ``work``.

    Raises :class:`paretone.errors.PlainError`, and :class:`Cancelled` once a checkpoint of what was done is written.
    """
    session = TrainingSession(recipe, work, budget, report=follower.status, follow=follower.milestone)
    session.train(resume)
    folder = export or work / EXPORT
    recipe.export(folder)
    shutil.copyfile(work / LOG, folder / LOG)
    return BundledModel(folder, session.number, session.seconds, session.validation)
