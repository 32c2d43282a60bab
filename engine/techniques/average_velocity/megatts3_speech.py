"""A MegaTTS 3 and the speech that it learns from, as a subject of the training."""

from __future__ import annotations

from pathlib import Path

from engine.errors import TrainingError
from engine.models.catalogue import CatalogueEntry
from engine.models.files.checkpoints import fingerprint
from engine.models.minis.megatts3_mini.checkpoint import MegaMiniFolder
from engine.techniques.average_velocity.megatts3 import MegaSubject
from engine.techniques.average_velocity.requests import AverageVelocityRequest
from engine.training.f5_checkpoints import place_of
from engine.training.follower import Follower
from engine.training.natural_corpus import CorpusOptions, known_options, make_corpus
from engine.training.natural_teacher import NaturalTeacher
from engine.training.processes import Processes
from engine.training.recipes.natural_megatts3 import latent_clip


def megatts3_subject(
    request: AverageVelocityRequest,
    chosen: CatalogueEntry,
    spoken: Path,
    corpus: CorpusOptions,
    processes: Processes,
    follower: Follower,
    seed: int,
) -> tuple[MegaSubject, str]:
    """The model with its speech, and the fingerprint of its checkpoint. ``spoken`` is the folder of natural speech."""
    folder = MegaMiniFolder(place_of(chosen, request.folder), follower.check)
    if not MegaMiniFolder.is_at(folder.root):
        raise TrainingError(f"{folder.root} is not a folder of the bundled MegaTTS 3; only that can be trained here.")
    if request.manifest:
        raise TrainingError(f"{chosen.title} learns from natural speech; leave the manifest out.")
    with processes.first_process_first():
        follower.status("Preparing natural speech")
        speech = make_corpus(spoken, known_options(spoken) or corpus, NaturalTeacher, follower.progress)
    clips, held_out = ([latent_clip(clip) for clip in part] for part in (speech.training, speech.held_out))
    subject = MegaSubject(folder.backbone(), clips, held_out, request.frames, seed)
    return subject, fingerprint(folder.weights_path, follower.check)
