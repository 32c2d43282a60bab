"""The offline judge of intelligibility; see :mod:`paretone.measure.intelligibility`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paretone.measure.evaluation.judges import Verdict
from paretone.measure.intelligibility import Judge
from paretone.models.base import Voice


def load(texts: Sequence[str], folder: Path, device: str) -> WordJudge:
    """The judge of ``texts``; it has no files and runs on the processor."""
    return WordJudge(texts)


class WordJudge:
    """pocketsphinx, closed over the sentences that it will hear."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._judge = Judge(texts)

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Word errors in a recording of ``text``."""
        errors = self._judge.word_errors([text], [(samples, rate)])
        return Verdict("words", {"edits": float(errors.edits[0]), "words": float(errors.words[0])}, errors.heard[0])
