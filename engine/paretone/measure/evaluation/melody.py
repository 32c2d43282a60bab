"""The judge of melody: pitch range and diversity; see :mod:`paretone.measure.melody`. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paretone.measure.evaluation.judges import Verdict
from paretone.measure.melody import log_pitch, pitch_range
from paretone.models.base import Voice

NAME = "melody"
FIGURE = "pitch_range"


def load(texts: Sequence[str], folder: Path, device: str) -> MelodyJudge:
    """The judge; it has no files and runs on the processor."""
    return MelodyJudge()


class MelodyJudge:
    """Pitch range of a recording, and its curve, which diversity is measured by."""

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """The melody of a recording; no figures if too little of it is voiced."""
        curve = log_pitch(samples, rate)
        spread = pitch_range(curve)
        figures = {} if spread is None else {FIGURE: spread}
        return Verdict(NAME, figures, curve=tuple(np.round(curve, 3).tolist()))
