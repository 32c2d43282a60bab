"""Recordings of a manifest as the bundled language model sees them: phones and speech tokens, side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from engine.models.minis.frames import token_phones
from engine.models.minis.lm_mini.checkpoint import LmMiniFolder
from engine.training import features
from engine.training.manifest import read_manifest
from engine.training.spoken_tokens import SpokenTokens


def record_tokens(
    manifest: Path,
    folder: LmMiniFolder,
    speech: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[tuple[SpokenTokens, ...], tuple[SpokenTokens, ...]]:
    """Utterances to train on, and held-out ones. ``speech`` is the folder for the prepared mels.

    ``progress`` is called with finished and total recordings and may raise to cancel. Raises
    :class:`engine.errors.PlainError` for a manifest, a recording or a folder that cannot be used.
    """
    tokenizer, _ = folder.tokenizer(torch.device("cpu"))
    rows = read_manifest(manifest)
    read = features.PhoneReader(folder.layout().vocabulary, features.TablePhones(folder.durations()))
    features.check_rows(manifest, rows, read)
    examples = features.prepare(manifest, rows, read, speech, progress)
    stride = tokenizer.config.stride

    @torch.inference_mode()
    def encoded(one: features.Example) -> SpokenTokens:
        codes = tokenizer.encode(torch.from_numpy(np.asarray(one.mel, np.float32))[None])[0]
        return SpokenTokens(one.voice, token_phones(one.ids, stride).astype(np.int16), codes.numpy().astype(np.int16))

    total = len(examples.training) + len(examples.held_out)
    found: tuple[list[SpokenTokens], list[SpokenTokens]] = ([], [])
    for kept, those in zip(found, (examples.training, examples.held_out), strict=True):
        for one in those:
            progress(len(found[0]) + len(found[1]), total)
            kept.append(encoded(one))
    return tuple(found[0]), tuple(found[1])
