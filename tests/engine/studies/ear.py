"""A judge that loads in no time, for studies of models that say noise."""

import numpy as np

from paretone.measure.evaluation.judges import JudgeKind, Verdict
from paretone.models.base import Voice

EAR = JudgeKind("ear", "Ear", "ear:load")


class Ear:
    """Mishears more words the louder speech is: something that differs from layer to layer."""

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        edits = float(int(1e6 * np.abs(samples).mean()) % 4)
        return Verdict("words", {"edits": edits, "words": float(len(text.split()))})


def silence(*said: object) -> tuple[np.ndarray, int]:
    """In the place of reference speech, which takes longer."""
    return np.zeros(100), 24_000
