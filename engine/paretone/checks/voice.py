"""Checks against the prompt: pace, pitch and formants, speaker. Torch-free."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paretone.checks.signal import Found, sureness
from paretone.checks.speech import ENVELOPE_STEPS, Speech

USUAL_PACE = 4.6
"""Syllables per second of speech, for comparisons without a prompt."""
PACE = 1.8
"""Factor on the mean of the usual pace and the prompt's, which is one sentence and no more typical than the former."""
SHORTEST_SYLLABLES = 3


def pace(speech: Speech) -> Iterator[Found]:
    """Syllables per second far from the prompt's."""
    pace = speech.pace
    if pace is None or speech.syllables < SHORTEST_SYLLABLES:
        return
    own = speech.prompt.pace if speech.prompt is not None else None
    usual = USUAL_PACE if own is None else (USUAL_PACE * own) ** 0.5
    factor = float(np.log2(pace / usual))
    said = f"{pace:.1f} syllables per second of speech, where {usual:.1f} are expected."
    yield 0.0, speech.seconds, sureness(abs(factor), float(np.log2(PACE)), 0.1), said


SHIFT, OF_LIKENESS, OF_PACE = 0.8, 0.5, 2.6
"""Evidence from which speech is moved, in octaves of pitch, and weights of the rest: a logistic regression on the takes
that thresholds were set with, some of them against another voice's prompt."""
BIAS = 0.1
"""Octaves by which models speak lower than the shipped prompts, and slower."""
SHORTEST_SHIFT = 0.15


def shifted(speech: Speech) -> Iterator[Found]:
    """Pitch, formants and pace moved the same way against the prompt, as by a wrong sample rate."""
    if speech.prompt is None or not speech.pitch or not speech.prompt.pitch:
        return
    octaves = float(np.log2(speech.pitch / speech.prompt.pitch)) + BIAS
    if abs(octaves) < SHORTEST_SHIFT:
        return
    near, steps = np.arange(-8, 9) / ENVELOPE_STEPS, np.arange(-3, 4) / ENVELOPE_STEPS
    moved = max(envelope_likeness(speech, speech.prompt, octaves + one) for one in near)
    gain = moved - max(envelope_likeness(speech, speech.prompt, one) for one in steps)
    pace = 0.0
    if speech.pace and speech.prompt.pace and speech.syllables >= SHORTEST_SYLLABLES:
        pace = (float(np.log2(speech.pace / (USUAL_PACE * speech.prompt.pace) ** 0.5)) + BIAS) * np.sign(octaves)
    evidence = abs(octaves) + OF_LIKENESS * float(np.clip(gain, -0.5, 0.6)) + OF_PACE * float(np.clip(pace, -0.5, 0.2))
    said = f"Pitch, formants and pace are those of speech played {2**octaves:.2f} times as fast as the prompt."
    yield 0.0, speech.seconds, sureness(evidence, SHIFT, 0.16), said


def envelope_likeness(speech: Speech, prompt: Speech, octaves: float) -> float:
    """Correlation of the long-term envelopes, with the prompt's moved up by ``octaves``."""
    shift = round(octaves * ENVELOPE_STEPS)
    one, two = speech.envelope, prompt.envelope
    first, second = one[max(0, shift) : len(one) + min(0, shift)], two[max(0, -shift) : len(two) + min(0, -shift)]
    return float(np.corrcoef(first, second)[0, 1]) if len(first) > ENVELOPE_STEPS else 0.0


SIMILAR = 0.62
"""Least cosine of the speaker embeddings (Resemblyzer) of speech and prompt."""


def voice(speech: Speech) -> Iterator[Found]:
    """A speaker unlike the prompt's, if their similarity was measured."""
    if speech.similarity is None:
        return
    said = f"The voice is unlike the prompt's: similarity {speech.similarity:.2f}."
    yield 0.0, speech.seconds, sureness(-speech.similarity, -SIMILAR, 0.05), said
