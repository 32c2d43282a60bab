"""Layout of a sequence of the bundled masked model.

Text comes first: one token per codec frame, those of the voice's recording before those of the text. Then the canvas:
the recording's frames, then those to fill in. Positions restart at the canvas, so a frame has the position of its
phones: rotary positions give the alignment, and the official network need not learn it.

A frame lasts 50 ms, longer than some phones, so a token stands for two phones, one for each half of the frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.front_end.phones import PhoneVocabulary
from paretone.models.files.config_file import ConfigFile
from paretone.models.minis.frames import token_phones

HALVES = 2
"""Phones of a token."""


@dataclass(frozen=True)
class Layout:
    """Meaning of a checkpoint's ids, from its ``layout.json``."""

    vocabulary: PhoneVocabulary
    """A token's id is the number of its first phone times the number of phones, plus the number of its second."""

    @classmethod
    def read(cls, path: Path) -> Layout:
        """Read a ``layout.json``. Raises :class:`CheckpointError`."""
        file = ConfigFile.read(path)
        layout = cls(PhoneVocabulary.read(file.text("phones")))
        declared, halves = file.number("text_tokens"), file.number("phones_per_token")
        if halves != HALVES or declared != layout.tokens:
            raise CheckpointError(
                f"{path} has {declared} text tokens of {halves} phones, where {len(layout.vocabulary.phones)} phones "
                f"make {layout.tokens} of {HALVES}; restore the model folder."
            )
        return layout

    @property
    def tokens(self) -> int:
        """Number of different text tokens."""
        return len(self.vocabulary.phones) ** HALVES

    def as_dict(self) -> dict[str, Any]:
        return {
            "phones": " ".join(self.vocabulary.phones),
            "phones_per_token": HALVES,
            "text_tokens": self.tokens,
            "text_ids": "number of the first phone times the number of phones, plus number of the second",
            "positions": "text from 0, canvas from 0 again",
        }

    def text(self, frames: np.ndarray, stride: int) -> np.ndarray:
        """Phones of latent frames (n,) to token ids, one per ``stride`` frames: (n // stride,) int64."""
        whole = len(frames) // stride * stride
        halves = token_phones(frames[:whole], stride // HALVES).reshape(-1, HALVES).astype(np.int64)
        return halves[:, 0] * len(self.vocabulary.phones) + halves[:, 1]


def positions(frames: int) -> Tensor:
    """(2 · frames,) of a text and its canvas."""
    return torch.arange(frames).repeat(2)
