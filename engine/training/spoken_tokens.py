"""Speech tokens to train language models on, with the phones that sound in them, and batches of them.

Where they come from does not matter here: recordings through a speech tokenizer, or the model's own speech
(:mod:`engine.training.self_generated`). All of them fit into memory and into one file.
"""

from __future__ import annotations

import random
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.errors import TrainingError
from engine.models.lm_mini.layout import Layout, positions
from engine.techniques.spade.losses import IGNORED


@dataclass(frozen=True)
class SpokenTokens:
    """One utterance: as many ``phones`` as ``codes``, both (n,) int16, side by side."""

    voice: str
    phones: np.ndarray = field(repr=False)
    codes: np.ndarray = field(repr=False)

    @property
    def frames(self) -> int:
        """How many tokens it has; named for :class:`engine.training.f5_mini.BatchQueue`."""
        return len(self.codes)


def write_tokens(path: Path, utterances: Sequence[SpokenTokens]) -> None:
    """Put them into one file."""
    voices = sorted({one.voice for one in utterances})
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part.npz")
    np.savez(
        unfinished,
        names=np.array(voices),
        voices=np.array([voices.index(one.voice) for one in utterances], np.int16),
        lengths=np.array([one.frames for one in utterances], np.int32),
        phones=np.concatenate([one.phones for one in utterances]).astype(np.int16),
        codes=np.concatenate([one.codes for one in utterances]).astype(np.int16),
    )
    unfinished.replace(path)


def read_tokens(path: Path) -> tuple[SpokenTokens, ...]:
    """What :func:`write_tokens` wrote. Raises :class:`TrainingError`."""
    try:
        with np.load(path) as file:
            names, voices, lengths = (file[name] for name in ("names", "voices", "lengths"))
            phones, codes = file["phones"], file["codes"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise TrainingError(
            f"The speech tokens in {path} cannot be read ({type(error).__name__}); delete the file, and they are made "
            "again."
        ) from error
    ends = np.cumsum(lengths)
    return tuple(
        SpokenTokens(str(names[voice]), phones[end - count : end], codes[end - count : end])
        for voice, count, end in zip(voices, lengths, ends, strict=True)
    )


@dataclass(frozen=True)
class TokenBatch:
    """Sequences of one batch. What is heard before its own beginning or after its own end is padding."""

    ids: Tensor
    """(B, T) int64, all of the vocabulary: text, then speech."""
    positions: Tensor
    """(T,) int64."""
    labels: Tensor
    """(B, T) int64: the row of the head that comes next, :data:`IGNORED` where nothing is predicted."""

    def to(self, device: torch.device) -> TokenBatch:
        """The same on ``device``."""
        return TokenBatch(self.ids.to(device), self.positions.to(device), self.labels.to(device))

    @property
    def predicting(self) -> Tensor:
        """(B, T) bool: where something is predicted."""
        return self.labels != IGNORED

    @property
    def heard(self) -> Tensor:
        """(B, T) bool: everything but the padding behind the speech."""
        speech = self.ids.shape[1] // 2
        heard = self.predicting.clone()
        heard[:, :speech] = True
        return heard


def collate(items: Sequence[Sequence[SpokenTokens]], layout: Layout) -> TokenBatch:
    """A batch whose items are one utterance, or some of one voice joined. Text is padded with ``end_of_text``, as in
    the model's own training: speech begins in the same column everywhere."""
    longest = max(sum(one.frames for one in item) for item in items) + 1
    ids = torch.full((len(items), 2 * longest), layout.end_of_text)
    labels = torch.full((len(items), 2 * longest), IGNORED)
    for row, item in enumerate(items):
        phones = torch.from_numpy(np.concatenate([one.phones for one in item]).astype(np.int64))
        codes = torch.from_numpy(np.concatenate([one.codes for one in item]).astype(np.int64))
        ids[row, : len(phones)] = phones
        ids[row, longest] = layout.start_of_speech
        ids[row, longest + 1 : longest + 1 + len(codes)] = codes + layout.first_code
        labels[row, longest : longest + len(codes)] = codes
        labels[row, longest + len(codes)] = layout.codes
    return TokenBatch(ids, positions(longest, longest - 1), labels)


def held_out_batches(utterances: Sequence[SpokenTokens], layout: Layout, count: int, size: int = 6) -> list[TokenBatch]:
    """About ``count`` items, the same every time: an utterance after another one of its voice, which is how the model
    speaks after a prompt."""
    draw = random.Random(3)
    items = []
    for one in utterances[:: max(1, len(utterances) // count)]:
        others = [other for other in utterances if other.voice == one.voice and other is not one]
        items.append([draw.choice(others), one] if others else [one])
    items.sort(key=lambda item: sum(one.frames for one in item))
    return [collate(items[start : start + size], layout) for start in range(0, len(items), size)]
