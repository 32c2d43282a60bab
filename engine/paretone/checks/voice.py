"""Checks against the prompt: pace, pitch, speaker. Torch-free."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paretone.checks.signal import Found, sureness
from paretone.checks.speech import Speech

PACE = 1.8
"""Factor on the mean of the usual pace and the prompt's, which is one sentence and no more typical than the former."""
SHORTEST_SYLLABLES = 3


def _faster(speech: Speech) -> float | None:
    """Octaves by which the pace is above the expected; ``None`` if it cannot be told."""
    if speech.pace is None or speech.syllables < SHORTEST_SYLLABLES:
        return None
    own = speech.prompt.pace if speech.prompt is not None else None
    return float(np.log2(speech.pace / (own or 1.0) ** 0.5))


def pace(speech: Speech) -> Iterator[Found]:
    """A pace far from the prompt's and from the usual."""
    factor = _faster(speech)
    if factor is not None:
        said = f"The text would be spoken {2**factor:.2f} times as fast as expected."
        yield 0.0, speech.seconds, sureness(abs(factor), float(np.log2(PACE)), 0.1), said


SHIFT, OF_PITCH = 0.28, 0.45
"""Octaves of pitch and pace together from which speech is moved, and the share of pitch in them: the weights by which a
shift of both differs least from take to take."""
SHORTEST_SHIFT = 0.15
"""Octaves of pitch alone: a fast text is no shift."""


def shifted(speech: Speech) -> Iterator[Found]:
    """Pitch and pace moved the same way against the prompt, as by a wrong sample rate."""
    if speech.prompt is None or not speech.pitch or not speech.prompt.pitch:
        return
    octaves = float(np.log2(speech.pitch / speech.prompt.pitch))
    if abs(octaves) < SHORTEST_SHIFT:
        return
    moved = OF_PITCH * octaves + (1 - OF_PITCH) * (_faster(speech) or 0.0)
    said = f"Pitch and pace are those of speech played {2**moved:.2f} times as fast as the prompt."
    yield 0.0, speech.seconds, sureness(moved * np.sign(octaves), SHIFT, 0.05), said


SIMILAR = 0.62
"""Least cosine of the speaker embeddings (Resemblyzer) of speech and prompt."""


def voice(speech: Speech) -> Iterator[Found]:
    """A speaker unlike the prompt's, if their similarity was measured."""
    if speech.similarity is None:
        return
    said = f"The voice is unlike the prompt's: similarity {speech.similarity:.2f}."
    yield 0.0, speech.seconds, sureness(-speech.similarity, -SIMILAR, 0.05), said
