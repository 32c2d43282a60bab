"""F5-TTS checkpoints for fine-tuning, and their training speech."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from paretone.errors import CheckpointError, TrainingError
from paretone.front_end.phones import PhoneVocabulary, labels
from paretone.models.catalogue import CatalogueEntry
from paretone.models.f5.checkpoint import F5Checkpoint, read_f5_checkpoint
from paretone.models.f5.dit import DiT
from paretone.models.f5.front_end import Passage, Prompt
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import trained_guidance
from paretone.setting.knobs import Values
from paretone.training import features
from paretone.training.features import Example, Examples
from paretone.training.manifest import read_manifest, require_both
from paretone.training.natural_corpus import NATURAL_CORPUS, CorpusOptions, NaturalClip, known_options, make_corpus
from paretone.training.natural_teacher import NaturalTeacher
from paretone.training.own_speech import Arrays, Reading, after_prompt, flow_speaker, own_readings
from paretone.training.processes import Processes
from paretone.training.requests import FineTuningRequest, Follower


def natural_examples(
    folder: Path, vocabulary: PhoneVocabulary, options: CorpusOptions, progress: Callable[[int, int], None]
) -> Examples:
    """Clips of the corpus in ``folder``, or of one made with ``options``; missing utterances are synthesised first.

    ``progress`` is called with finished and total utterances and may raise to cancel. Raises
    :class:`paretone.errors.PlainError`.
    """
    corpus = make_corpus(folder, known_options(folder) or options, NaturalTeacher, progress)

    def example(clip: NaturalClip) -> Example:
        return Example(clip.voice, labels(clip.phones, clip.frames, vocabulary), clip.mel)

    return Examples(tuple(map(example, corpus.training)), tuple(map(example, corpus.held_out)))


SPEECH = "speech"
"""Folder of the prepared speech, in the work folder."""


def place_of(chosen: CatalogueEntry, folder: str) -> Path:
    """Folder of the model: ``folder``, or the default. Raises :class:`CheckpointError` if it does not exist."""
    place = Path(folder) if folder else chosen.folder
    if not place.exists():
        raise CheckpointError(
            f"{chosen.title} is not in {place}; download it, or choose the folder that holds its checkpoint."
        )
    return place


def guided_checkpoint(chosen: CatalogueEntry, folder: str, variant: str, check: Callable[[], None]) -> F5Checkpoint:
    """Checkpoint to start from. Raises :class:`CheckpointError`, and :class:`TrainingError` for guidance-free
    weights."""
    place = place_of(chosen, folder)
    checkpoint = read_f5_checkpoint(place, variant or ("" if folder else chosen.variant), check)
    if trained_guidance(checkpoint.path) is not None:
        raise TrainingError(
            f"{checkpoint.path} has guidance in its weights already; start from the model that it was made from."
        )
    return checkpoint


def diffusion_transformer(checkpoint: F5Checkpoint) -> DiT:
    """Model to train, with the weights of ``checkpoint``. Raises :class:`TrainingError` for other backbones."""
    backbone = checkpoint.build() if checkpoint.config.backbone == "DiT" else None
    if not isinstance(backbone, DiT):
        raise TrainingError(f"{checkpoint.path} is not an F5-TTS; only its diffusion transformer can be trained here.")
    return backbone


def speech_to_learn(
    request: FineTuningRequest,
    chosen: CatalogueEntry,
    checkpoint: F5Checkpoint,
    guidance: float,
    corpus: CorpusOptions,
    processes: Processes,
    follower: Follower,
) -> Examples:
    """Training speech of ``request``: recordings, the model's own speech under ``guidance``, or both. A bundled model
    without either learns from natural speech with the options ``corpus``, synthesised if missing. Raises
    :class:`paretone.errors.PlainError`."""
    work, found = Path(request.work), Examples((), ())
    if request.manifest:
        found += recorded_examples(Path(request.manifest), checkpoint, work, processes, follower)
    if request.sentences:
        found += own_examples(request, chosen, checkpoint, guidance, processes, follower)
    if not found.training and chosen.bundled:
        spoken = Path(request.corpus) if request.corpus else work.parent / NATURAL_CORPUS
        natural = spoken_examples(spoken, checkpoint, corpus, processes, follower)
        found += Examples(natural.training, () if request.validation else natural.held_out)
    require_both(found.training, found.held_out)
    return found


def own_examples(
    request: FineTuningRequest,
    chosen: CatalogueEntry,
    checkpoint: F5Checkpoint,
    guidance: float,
    processes: Processes,
    follower: Follower,
) -> Examples:
    """The model's own speech, each sentence after the recording of its voice."""

    def keep(prompt: Prompt, passage: Passage, state: np.ndarray) -> Arrays:
        mel = after_prompt(prompt.mel, state, prompt.frames)
        return {"ids": passage.ids[0].numpy().astype(np.int32), "mel": mel, "prompt": np.array(prompt.frames)}

    speaker = flow_speaker(request, chosen, Values(guidance=guidance), keep, follower.check)
    base = fingerprint(checkpoint.path, follower.check)
    training, held_out = own_readings(request, chosen, base, speaker, processes, follower)
    return Examples(tuple(map(_example, training)), tuple(map(_example, held_out)))


def _example(reading: Reading) -> Example:
    arrays = reading.arrays
    return Example(reading.voice, arrays["ids"].astype(np.int64), arrays["mel"], int(arrays["prompt"]))


def recorded_examples(
    manifest: Path, checkpoint: F5Checkpoint, work: Path, processes: Processes, follower: Follower
) -> Examples:
    follower.status(f"Reading {manifest.name}")
    rows = read_manifest(manifest, follower.check)
    read = features.reader(checkpoint)
    features.check_rows(manifest, rows, read, follower.check)
    with processes.first_process_first():
        follower.status(f"Preparing {len(rows)} recordings")
        return features.prepare(manifest, rows, read, work / SPEECH, follower.progress)


def spoken_examples(
    folder: Path, checkpoint: F5Checkpoint, options: CorpusOptions, processes: Processes, follower: Follower
) -> Examples:
    """Natural speech for a bundled model: the corpus in ``folder``, made if missing."""
    vocabulary = PhoneVocabulary.load(checkpoint.path.parent / "vocab.txt")
    with processes.first_process_first():
        follower.status("Preparing natural speech")
        return natural_examples(folder, vocabulary, options, follower.progress)
