"""CosyVoice 2's flow and the speech that it learns from, as a subject of the training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from paretone.models import load_model
from paretone.models.base import Voice
from paretone.models.catalogue import CatalogueEntry
from paretone.models.cosyvoice2.adapter import CosySpeech
from paretone.models.cosyvoice2.checkpoint import FLOW, OfficialFolder
from paretone.models.cosyvoice2.prompts import VoicePrompts
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, TokenToMel
from paretone.models.families.voices import changed
from paretone.models.files.checkpoints import fingerprint
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.techniques.average_velocity.cosyvoice2 import CosyClip, CosySubject
from paretone.techniques.average_velocity.requests import AverageVelocityRequest
from paretone.training.f5_checkpoints import SPEECH, place_of
from paretone.training.follower import Follower
from paretone.training.manifest import ManifestRow, read_manifest
from paretone.training.own_speech import Say, Speaker, own_readings
from paretone.training.processes import Processes
from paretone.training.readings import Arrays, Reading, folder_of, kept_readings


def cosyvoice2_subject(
    request: AverageVelocityRequest, chosen: CatalogueEntry, processes: Processes, follower: Follower, seed: int
) -> tuple[CosySubject, str]:
    """The flow with its speech, and the fingerprint of its file."""
    folder = OfficialFolder(place_of(chosen, request.folder), check=follower.check)
    folder.require_parts()
    base, flow = fingerprint(folder.root / FLOW, follower.check), folder.flow()
    training: list[CosyClip] = []
    held_out: list[CosyClip] = []
    if request.manifest:
        for row, clip in _recorded(request, folder, flow, base, processes, follower):
            (held_out if row.held_out else training).append(clip)
    if request.sentences:
        speaker = _speaker(request, chosen, follower)
        own = own_readings(request, chosen, f"{base} {fingerprint(folder.checkpoint)}", speaker, processes, follower)
        training += map(_clip, own[0])
        held_out += map(_clip, own[1])
    return CosySubject(flow, training, held_out, request.frames, seed), base


def _recorded(
    request: AverageVelocityRequest,
    folder: OfficialFolder,
    flow: TokenToMel,
    base: str,
    processes: Processes,
    follower: Follower,
) -> list[tuple[ManifestRow, CosyClip]]:
    """Recordings as the release's own models hear them; their texts are not needed."""
    manifest = Path(request.manifest)
    follower.status(f"Reading {manifest.name}")
    rows = read_manifest(manifest, follower.check)
    told = [[str(row.audio.resolve()), row.voice, changed(row.audio)] for row in rows]

    def ready() -> Callable[[ManifestRow], Iterable[Reading]]:
        prompts = VoicePrompts(folder.recording_encoder(), flow.config.tokens, flow.config.speaker_width)

        def hear(row: ManifestRow) -> Iterable[Reading]:
            heard = prompts(row.audio, follower.check).acoustic
            return [Reading(row.voice, _arrays(heard, np.zeros(0, np.int64), None, 0))]

        return hear

    with processes.first_process_first():
        follower.status(f"Preparing {len(rows)} recordings")
        place = folder_of(Path(request.work) / SPEECH, base, told)
        return list(zip(rows, map(_clip, kept_readings(place, rows, ready, follower)), strict=True))


def _speaker(request: AverageVelocityRequest, chosen: CatalogueEntry, follower: Follower) -> Speaker:
    """The whole model as it speaks by default."""
    options = chosen.options_with()

    def ready() -> Say:
        model = load_model(request.model, request.folder, request.variant, request.device, check=follower.check)
        assert isinstance(model, CosySpeech)

        def say(text: str, voice: Voice, seed: int) -> Iterable[Arrays]:
            setting = Setting(request.model, options, seed=seed)
            for prompt, tokens, mel in model.readings(scripted(model, text, voice, setting), follower.check):
                spoken = mel[0].T.cpu().numpy()
                yield _arrays(prompt, np.array(tokens, np.int64), spoken, prompt.tokens.shape[1])

        return say

    return Speaker(options, ready)


def _arrays(prompt: AcousticPrompt, tokens: np.ndarray, mel: np.ndarray | None, before: int) -> Arrays:
    """A recording, and what is spoken after it, of which ``before`` tokens are a prompt."""
    heard = prompt.mel[0].cpu().numpy()
    return {
        "tokens": np.concatenate([prompt.tokens[0].cpu().numpy(), tokens]),
        "mel": (heard if mel is None else np.concatenate([heard, mel])).astype(np.float16),
        "speaker": prompt.speaker[0].cpu().numpy(),
        "prompt": np.array(before),
    }


def _clip(reading: Reading) -> CosyClip:
    arrays = dict(reading.arrays)
    return CosyClip(reading.voice, prompt=int(arrays.pop("prompt")), **arrays)
