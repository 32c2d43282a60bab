"""Whether two takes are the same sound."""

import numpy as np

from paretone.models.families.passages import streaming_difference

LARGEST_DECIBELS = -60
"""Of the difference, relative to the sound. Not bits: pulses of a voice come where its pitch, added up from the
beginning, says; and pitch is rounded otherwise where frames come in other pieces."""


def assert_same_sound(found: np.ndarray, expected: np.ndarray) -> None:
    """Fail unless both (n,) sound the same, sample by sample."""
    difference = streaming_difference(found, expected)
    assert np.abs(expected).max() > 0, "nothing is heard"
    assert len(found) == len(expected) and difference.level <= LARGEST_DECIBELS, difference
