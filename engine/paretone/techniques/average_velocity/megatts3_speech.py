"""A MegaTTS 3, bundled or released, and the speech that it learns from, as a subject of the training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paretone.errors import TrainingError
from paretone.models.catalogue import CatalogueEntry
from paretone.models.families.voices import changed
from paretone.models.files.checkpoints import fingerprint
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.config import LATENTS
from paretone.models.megatts3.front_end import OfficialFrontEnd
from paretone.models.megatts3.passages import MegaPassage, MegaPrompt, Timed
from paretone.models.minis.megatts3_mini import MegaMiniFolder
from paretone.setting.knobs import Values
from paretone.techniques.average_velocity.megatts3 import MegaSubject
from paretone.techniques.average_velocity.requests import AverageVelocityRequest
from paretone.training.f5_checkpoints import SPEECH, place_of
from paretone.training.follower import Follower
from paretone.training.manifest import ManifestRow, read_manifest
from paretone.training.natural_corpus import NATURAL_CORPUS, CorpusOptions, known_options, make_corpus
from paretone.training.natural_teacher import NaturalTeacher
from paretone.training.own_speech import after_prompt, flow_speaker, own_readings
from paretone.training.processes import Processes
from paretone.training.readings import Arrays, Reading, folder_of, kept_readings
from paretone.training.recipes.mega_recipe import LatentClip
from paretone.training.recipes.natural_megatts3 import latent_clip

NO_PHONES = Timed((), (), ())
Clips = tuple[list[LatentClip], list[LatentClip]]
"""To train on, and to validate on."""


@dataclass(frozen=True)
class MegaSpeechSource:
    """Where the speech for a request comes from."""

    request: AverageVelocityRequest
    chosen: CatalogueEntry
    guidance: Values
    base: str
    """Fingerprint of the checkpoint."""
    processes: Processes
    follower: Follower

    def natural(self, corpus: CorpusOptions) -> Clips:
        """Of the kind that the bundled model learnt from."""
        work = Path(self.request.work)
        folder = Path(self.request.corpus) if self.request.corpus else work.parent / NATURAL_CORPUS
        with self.processes.first_process_first():
            self.follower.status("Preparing natural speech")
            speech = make_corpus(folder, known_options(folder) or corpus, NaturalTeacher, self.follower.progress)
        training, held_out = ([latent_clip(clip) for clip in part] for part in (speech.training, speech.held_out))
        return training, held_out

    def own(self) -> Clips:
        """What the model says itself, each sentence after the recording of its voice."""
        speaker = flow_speaker(self.request, self.chosen, self.guidance, _drawn, self.follower.check)
        parts = own_readings(self.request, self.chosen, self.base, speaker, self.processes, self.follower)
        training, held_out = (list(map(_clip, part)) for part in parts)
        return training, held_out

    def recorded(self, folder: OfficialFolder) -> Clips:
        """Recordings as the release hears them, by its aligner and the latents next to them, or its encoder."""
        manifest, follower = Path(self.request.manifest), self.follower
        follower.status(f"Reading {manifest.name}")
        rows = read_manifest(manifest, follower.check)
        told = [
            [str(row.audio.resolve()), row.voice, changed(row.audio), changed(row.audio.with_suffix(LATENTS))]
            for row in rows
        ]

        def ready() -> Callable[[ManifestRow], Iterable[Reading]]:
            front_end = OfficialFrontEnd.load(folder, folder.wavvae())
            return lambda row: [Reading(row.voice, _heard(front_end.prompt(row.audio, check=follower.check)))]

        with self.processes.first_process_first():
            follower.status(f"Preparing {len(rows)} recordings")
            place = folder_of(Path(self.request.work) / SPEECH, self.base, told)
            clips = map(_clip, kept_readings(place, rows, ready, follower))
        heard = list(zip(rows, clips, strict=True))
        training, held_out = ([clip for row, clip in heard if row.held_out == held] for held in (False, True))
        return training, held_out


def megatts3_subject(
    request: AverageVelocityRequest,
    chosen: CatalogueEntry,
    guidance: Values,
    corpus: CorpusOptions,
    processes: Processes,
    follower: Follower,
    seed: int,
) -> tuple[MegaSubject, str]:
    """The model with its speech, and the fingerprint of its checkpoint."""
    root = place_of(chosen, request.folder)
    released = None if MegaMiniFolder.is_at(root) else OfficialFolder(root, follower.check)
    if released is None and request.manifest:
        raise TrainingError(
            f"{chosen.title} learns from natural speech, or from what it says itself; leave the manifest out."
        )
    if released is not None:
        released.require_parts()
    folder = released or MegaMiniFolder(root, follower.check)
    path = folder.weights_path if isinstance(folder, MegaMiniFolder) else folder.backbone_path
    base = fingerprint(path, follower.check)
    source = MegaSpeechSource(request, chosen, guidance, base, processes, follower)
    parts = [source.recorded(released)] if released is not None and request.manifest else []
    if request.sentences:
        parts.append(source.own())
    if not parts:
        parts.append(source.natural(corpus))
    training, held_out = ([one for part in parts for one in part[number]] for number in (0, 1))
    return MegaSubject(folder.backbone(), training, held_out, request.frames, seed), base


def _drawn(prompt: MegaPrompt, passage: MegaPassage, state: np.ndarray) -> Arrays:
    return _arrays(passage, after_prompt(prompt.latents, state, prompt.frames), prompt.frames)


def _heard(prompt: MegaPrompt) -> Arrays:
    """A whole recording: there is nothing before it."""
    passage = MegaPassage.of("", NO_PHONES, prompt.spoken)
    return _arrays(passage, prompt.latents[0, : passage.frames].numpy().astype(np.float16), 0)


def _arrays(passage: MegaPassage, latents: np.ndarray, prompt: int) -> Arrays:
    return {
        "latents": latents,
        "phones": passage.phones[0].numpy(),
        "tones": passage.tones[0].numpy(),
        "phones_of_frames": passage.mel2ph[0].numpy(),
        "prompt": np.array(prompt),
    }


def _clip(reading: Reading) -> LatentClip:
    arrays = dict(reading.arrays)
    return LatentClip(reading.voice, prompt=int(arrays.pop("prompt")), **arrays)
