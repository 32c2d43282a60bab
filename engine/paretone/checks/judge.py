"""The checks of takes as a judge, for studies, searches and ``paretone judge``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paretone.checks.faults import checked
from paretone.checks.speech import Speech, prompt_of
from paretone.measure.evaluation.judges import Judge, Verdict
from paretone.models.base import Voice

NAME = "faults"


def load(texts: Sequence[str], folder: Path, device: str) -> FaultJudge:
    return FaultJudge()


def heard(
    judge: Judge, text: str, voice: Voice, samples: np.ndarray, rate: int, seams: Sequence[float] = ()
) -> Verdict:
    """Verdict of any ``judge``; one of faults is told the ``seams``."""
    known = {"seams": seams} if isinstance(judge, FaultJudge) else {}
    return judge.hear(text, voice, samples, rate, **known)


class FaultJudge:
    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int, seams: Sequence[float] = ()) -> Verdict:
        """Number of all faults in a recording of ``text`` joined at ``seams`` (seconds), and of each."""
        prompt = prompt_of(voice.audio, voice.transcript) if voice.audio else None
        found = checked(Speech(samples, rate, text, tuple(seams), prompt)).findings
        counts = Counter(one.fault for one in found)
        return Verdict(NAME, {NAME: float(len(found)), **{name: float(count) for name, count in counts.items()}})
