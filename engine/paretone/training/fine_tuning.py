"""What fine-tunings of models of the catalogue share, from a request to a file that the engine finds again."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import torch

from paretone.errors import TrainingError
from paretone.models.catalogue import CatalogueEntry
from paretone.training.follower import Follower
from paretone.training.processes import Processes, join_processes
from paretone.training.recipe import Recipe
from paretone.training.requests import FineTuningRequest
from paretone.training.saving import save_with_log
from paretone.training.session import Budget, Intervals, TrainingSession, check_place


class FineTuning(Recipe, Protocol):
    """A training whose result is one file."""

    @property
    def file_name(self) -> str: ...

    def save(self, path: Path) -> None: ...


def begin(request: FineTuningRequest, chosen: CatalogueEntry, follower: Follower) -> tuple[Processes, Follower]:
    """The processes that train together, and this one's follower. Raises :class:`paretone.errors.PlainError` if
    ``chosen`` has nothing to learn from or the work folder cannot be used."""
    check_place(Path(request.work), request.resume, Path(request.export) if request.export else None)
    Budget(request.minutes, request.steps)  # Raises before anything is read.
    processes = join_processes(request.device, request.half_precision)
    if not processes.is_first:
        follower = Follower()
    if not (request.names_speech or chosen.bundled):
        raise TrainingError(
            f"{chosen.title} needs speech to learn from: give a manifest of recordings, or a number of sentences that "
            "it is to say itself."
        )
    follower.status(f"Reading {chosen.title}")
    # As in synthesis: numbers too small to be heard are slow to compute with.
    torch.set_flush_denormal(True)
    return processes, follower


def complete(
    recipe: FineTuning,
    request: FineTuningRequest,
    folder: Path,
    intervals: Intervals,
    processes: Processes,
    follower: Follower,
) -> tuple[TrainingSession, Path]:
    """Train, and write the result into ``request.export``, else ``folder``: the finished session, and the file.

    Raises :class:`paretone.errors.PlainError`, and :class:`Cancelled` once a checkpoint of what was done is written.
    """
    work, budget = Path(request.work), Budget(request.minutes, request.steps)
    session = TrainingSession(recipe, work, budget, intervals, follower.status, follower.milestone, processes)
    session.train(request.resume)
    target = (Path(request.export) if request.export else folder) / recipe.file_name
    if processes.is_first:
        target = save_with_log(recipe.save, target, work)
    return session, target
