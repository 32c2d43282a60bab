"""Fine-tuning a model of the catalogue on a manifest, from its checkpoint to a file that the engine finds again.

The command line and the engine's job are both this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from engine import locks
from engine.errors import Cancelled, CheckpointError, TrainingError
from engine.models.catalogue import CatalogueEntry, entry
from engine.models.f5.checkpoint import F5Checkpoint, read_f5_checkpoint
from engine.models.files.weight_sets import FOLDER, cfg_free_weight
from engine.paths import data_folder
from engine.techniques.guidance_free.recipe import GuidanceFree, GuidanceFreeOptions
from engine.training import features
from engine.training.corpora import CORPUS, SENTENCES, flite_corpus
from engine.training.follower import Follower, SilentFollower
from engine.training.manifest import read_manifest, write_clips
from engine.training.processes import Processes, join_processes
from engine.training.saving import save_with_log
from engine.training.session import Budget, Pace, Session, check_place

SMALL_PARAMETERS = 20_000_000
SMALL_RATE, USUAL_RATE = 3e-4, 1e-5
"""Learning rates: measured on the bundled model; the official one for fine-tuning the released ones."""
PACE = Pace(validation_steps=100, validates_first=True)
MANIFEST = "flite"
"""Of what flite speaks: the name of its folder, next to the work folder, and of its file."""
SPEECH = "speech"
"""Folder of the prepared speech, in the work folder."""


@dataclass(frozen=True)
class FineTuning:
    """What is to be trained, on what, and for how long."""

    model: str
    manifest: Path | None
    """``None`` for what flite speaks in the bundled model's two voices, which is what that has learnt from."""
    work: Path
    options: GuidanceFreeOptions
    budget: Budget
    learning_rate: float | None = None
    """``None`` for the usual one of a model of this size."""
    folder: str = ""
    """Where the checkpoint lies, if not in its usual place."""
    variant: str = ""
    device: str = "auto"
    resume: bool = False
    export: Path | None = None
    """Folder to write the result to; ``None`` for the user's own, where the application looks for it."""
    sentences: int = SENTENCES
    """What flite speaks in each voice if there is no manifest."""


@dataclass(frozen=True)
class FineTuned:
    """What came of it. Of several processes, only the first writes ``checkpoint``."""

    checkpoint: Path
    is_first: bool
    steps: int
    seconds: float
    validation: dict[str, float]


def guidance_free_folder(model: str) -> Path:
    """Where the engine looks for CFG-free checkpoints that the user trained."""
    return data_folder() / "models" / model / FOLDER


def fine_tune(job: FineTuning, follower: Follower, pace: Pace = PACE) -> FineTuned:
    """Train, and export the result.

    Raises :class:`engine.errors.PlainError`, and :class:`Cancelled` once a checkpoint of what was done is written.
    """
    chosen = entry(job.model)
    if chosen.loader != "f5":
        raise TrainingError(f"{chosen.title} cannot be trained here, only F5-TTS.")
    check_place(job.work, job.resume)
    processes = join_processes(job.device, job.options.half_precision)
    if not processes.is_first:
        follower = SilentFollower()
    with processes.first_goes_first():
        manifest = job.manifest or _spoken(job, chosen, follower)
    follower.status(f"Reading {manifest.name}")
    rows = read_manifest(manifest, follower.check)
    follower.status(f"Reading {chosen.title}")
    checkpoint = _checkpoint(job, chosen, follower.check)
    read = features.reader(checkpoint)
    features.check_rows(manifest, rows, read, follower.check)
    # As in synthesis: numbers too small to be heard are slow to compute with.
    torch.set_flush_denormal(True)
    with processes.first_goes_first():
        follower.status(f"Preparing {len(rows)} recordings")
        examples = features.prepare(manifest, rows, read, job.work / SPEECH, follower.progress)
    session = _session(job, checkpoint, examples, processes, follower, pace)
    follower.status("Training")
    if not session.run():
        raise Cancelled(f"Stopped at step {session.number}; the work folder holds a checkpoint to resume from.")
    target = (job.export or guidance_free_folder(job.model)) / session.recipe.file_name
    if processes.is_first:
        target = save_with_log(session.recipe.save, target, session.work)
    return FineTuned(target, processes.is_first, session.number, session.seconds, session.validation)


def _spoken(job: FineTuning, chosen: CatalogueEntry, follower: Follower) -> Path:
    """A manifest of what flite speaks, made now if it is not next to the work folder yet."""
    if not chosen.bundled:
        raise TrainingError(f"{chosen.title} needs a manifest of recordings to learn from; choose one.")
    folder = job.work.parent
    manifest = folder / MANIFEST / f"{MANIFEST}.csv"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    # Of two trainings that want it at once, the second one finds it made.
    with locks.held(manifest.parent / "making.sqlite", follower.check):
        if not manifest.is_file():
            follower.status("flite speaks what is learnt from")
            corpus = flite_corpus(folder / CORPUS, job.sentences, follower.progress)
            follower.status("Writing it as recordings")
            write_clips(manifest, corpus.training, corpus.held_out, follower.check)
    return manifest


def _checkpoint(job: FineTuning, chosen: CatalogueEntry, check: Callable[[], None]) -> F5Checkpoint:
    place = Path(job.folder) if job.folder else chosen.folder
    if not place.exists():
        raise CheckpointError(
            f"{chosen.title} is not in {place}; download it, or choose the folder that holds its checkpoint."
        )
    checkpoint = read_f5_checkpoint(place, job.variant or ("" if job.folder else chosen.variant), check)
    if cfg_free_weight(checkpoint.path) is not None:
        raise TrainingError(f"{checkpoint.path} is already CFG-free; start from the model that it was made from.")
    return checkpoint


def _session(
    job: FineTuning,
    checkpoint: F5Checkpoint,
    examples: features.Examples,
    processes: Processes,
    follower: Follower,
    pace: Pace,
) -> Session:
    parameters = sum(value.numel() for value in checkpoint.weights.values())
    usual = SMALL_RATE if parameters < SMALL_PARAMETERS else USUAL_RATE
    rate = usual if job.learning_rate is None else job.learning_rate
    recipe = GuidanceFree(checkpoint, examples, processes, replace(job.options, learning_rate=rate))
    session = Session(recipe, job.work, job.budget, pace, follower.status, follower.milestone, processes)
    session.begin(job.resume)
    return session
