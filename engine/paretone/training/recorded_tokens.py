"""Recordings of a manifest as the bundled language model sees them: phones and speech tokens, side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paretone.models.minis.lm_mini import LmMiniParts
from paretone.models.minis.natural_coding import NaturalVoice
from paretone.models.minis.natural_decoder import HOP, MEL_HOP
from paretone.models.minis.quantisers import token_phones
from paretone.training import features
from paretone.training.manifest import read_manifest
from paretone.training.spoken_tokens import SpokenTokens


@torch.inference_mode()
def record_tokens(
    manifest: Path,
    parts: LmMiniParts,
    speech: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[tuple[SpokenTokens, ...], tuple[SpokenTokens, ...]]:
    """Utterances to train on, and held-out ones. ``parts`` are those of the model, ``speech`` is the folder for the
    prepared mels. A voice is known by all its recordings.

    ``progress`` is called with finished and total recordings and may raise to cancel. Raises
    :class:`paretone.errors.PlainError` for a manifest, a recording or a folder that cannot be used.
    """
    coding, rows = parts.coding, read_manifest(manifest)
    read = features.PhoneReader(parts.layout.vocabulary)
    features.check_rows(manifest, rows, read)
    examples = features.prepare(manifest, rows, read, speech, progress)
    every = (*examples.training, *examples.held_out)
    frames: dict[int, Tensor] = {}
    by_voice: dict[str, list[Tensor]] = {}
    for number, one in enumerate(every):
        progress(number, len(every))
        frames[number] = coding.frames(torch.from_numpy(np.asarray(one.mel, np.float32))[None])
        by_voice.setdefault(one.voice, []).append(frames[number])
    who = {voice: NaturalVoice.of(torch.cat(those)) for voice, those in by_voice.items()}
    found = []
    for number, one in enumerate(every):
        codes = coding.codes(frames[number], who[one.voice]).cpu().numpy()
        phones = token_phones(at_frames(one.ids, len(frames[number])), coding.stride)
        found.append(SpokenTokens(one.voice, phones.astype(np.int16), codes.astype(np.int16)))
    progress(len(every), len(every))
    training = len(examples.training)
    return tuple(found[:training]), tuple(found[training:])


def at_frames(ids: np.ndarray, frames: int) -> np.ndarray:
    """One id a mel frame (n,) to one for each of ``frames`` latent frames: that of the mel frame in which its middle
    lies."""
    middles = ((np.arange(frames) + 0.5) * HOP / MEL_HOP).astype(np.int64)
    return ids[middles.clip(max=len(ids) - 1)]
