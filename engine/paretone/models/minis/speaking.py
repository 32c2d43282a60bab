"""What the bundled models with tokens share: their folder, how they read texts and voices, and the adapter base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paretone.front_end.alignment import Aligner, Alignment, alignment_notes
from paretone.front_end.phones import TimedPhone
from paretone.front_end.reading import NaturalReader
from paretone.models.f5.front_end import Prompt
from paretone.models.minis.natural_decoder import SAMPLE_RATE

WEIGHTS, CONFIG, LAYOUT_FILE = "model.safetensors", "config.json", "layout.json"
NATURAL_PHONES = "natural phones"
"""Name of the text front end."""


@dataclass(frozen=True)
class MiniFolder:
    """A folder of a bundled model. Every method that reads raises :class:`paretone.errors.CheckpointError`, and calls
    ``check`` now and then, which may raise to cancel."""

    root: Path
    check: Callable[[], None] = lambda: None

    @property
    def weights_path(self) -> Path:
        """The weight file that identifies the model."""
        return self.root / WEIGHTS


Spoken = tuple[str, tuple[TimedPhone, ...]]
"""A piece of text, and its phones."""


class Texts:
    """Reads texts by the phones and lengths of natural speech, and finds transcripts in recordings."""

    def __init__(self) -> None:
        self._reader = NaturalReader()

    def spoken(
        self, text: str, speed: float, by_sentence: bool, seed: int | None
    ) -> tuple[list[Spoken], tuple[str, ...]]:
        """Pieces of ``text``, and what the user should know; with ``by_sentence`` no piece has more than one sentence.
        The pace is drawn from ``seed``, and is the mean one without. Raises :class:`paretone.errors.TextError` and
        :class:`paretone.errors.SettingError`."""
        pieces, notes = self._reader.pieces(text, speed, by_sentence=by_sentence, seed=seed)
        return [(piece.text, piece.phones) for piece in pieces], notes

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """As :class:`paretone.front_end.alignment.Aligner` says."""
        return self._reader.heard(samples, rate, transcript)


def phones_of_prompt(read: Prompt, reader: Aligner) -> tuple[tuple[TimedPhone, ...], tuple[str, ...]]:
    """The phones that come with the recording, or else those that are found in it; and what the user should know.

    Raises :class:`paretone.errors.AudioError` and :class:`paretone.errors.TextError`.
    """
    if read.voice.phones:
        return read.voice.phones, read.notes
    heard = reader.heard(read.samples.numpy(), SAMPLE_RATE, read.voice.transcript)
    return heard.phones, (*read.notes, *alignment_notes(heard))
