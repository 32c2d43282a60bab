"""The offline judge of intelligibility; see :mod:`engine.measure.intelligibility`. Torch-free at import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.models.base import Voice

if TYPE_CHECKING:
    from engine.measure.evaluation.judges import Verdict


class WordJudge:
    """pocketsphinx, closed over the sentences that it will hear."""

    def __init__(self, texts: Sequence[str]) -> None:
        from engine.measure.intelligibility import Judge

        self._judge = Judge(texts)

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Word errors in a recording of ``text``."""
        from engine.measure.evaluation.judges import Verdict

        errors = self._judge.word_errors([text], [(samples, rate)])
        return Verdict("words", {"edits": float(errors.edits[0]), "words": float(errors.words[0])}, errors.heard[0])
