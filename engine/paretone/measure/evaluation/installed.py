"""The judges of anybody's speech that are installed, loaded once for takes and files alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretone.errors import AudioError
from paretone.measure.evaluation.judges import judge_named

if TYPE_CHECKING:
    from paretone.measure.evaluation.naturalness import NaturalnessJudge
    from paretone.measure.evaluation.speakers import VoiceJudge


def naturalness_judge() -> NaturalnessJudge | None:
    """The judge of naturalness; ``None`` while its weights are not installed."""
    return None if judge_named("naturalness").problem() else _naturalness_judge()


def voice_judge() -> VoiceJudge | None:
    """The judge of voices; ``None`` while its weights are not installed."""
    return None if judge_named("voice").problem() else _voice_judge()


@lru_cache(maxsize=1)
def _naturalness_judge() -> NaturalnessJudge:
    from paretone.measure.evaluation.naturalness import load

    return load((), Path(), "cpu")


@lru_cache(maxsize=1)
def _voice_judge() -> VoiceJudge:
    from paretone.measure.evaluation.speakers import load

    return load((), Path(), "cpu")


def heard_figures(
    samples: np.ndarray,
    rate: int,
    reference: np.ndarray | None = None,
    check: Callable[[], None] = lambda: None,
) -> tuple[dict[str, float], str]:
    """Naturalness of mono ``samples`` (n,) at ``rate`` Hz, and similarity to the voice with the embedding ``reference``
    (256,), by the names of :mod:`paretone.measure.metrics`; what no installed judge says is left out. And why they
    could not be judged, or ``""``.

    ``check`` is called every third of a second and may raise to cancel.
    """
    naturalness, voices = naturalness_judge(), voice_judge() if reference is not None else None
    found: dict[str, float] = {}
    check()
    try:
        if voices is not None and reference is not None:
            found["voice_similarity"] = voices.similarity(reference, voices.voice_of(samples, rate))
        if naturalness is not None:
            found["naturalness"] = naturalness.naturalness(samples, rate, check)
    except AudioError as error:
        return found, str(error)
    return found, ""
