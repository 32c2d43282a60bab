"""A sound to be heard alone, with what it is called."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paretone.measure.loudness import FULL_SCALE, gain_to, headroom
from paretone_app.audio.envelope import Envelope
from paretone_app.audio.same_word import frames_of

ALONE_LUFS = -23.0
"""How loud sounds are played alone (EBU R 128), so that one after the other can be judged."""
QUIETEST = 1e-4
"""The highest sample of what counts as silence: 80 dB below full scale."""
MEASURED_SECONDS = 15
"""How much of a sound is measured, in a moment."""


def is_silent(samples: np.ndarray) -> bool:
    """Whether nothing can be heard of mono ``samples`` at any volume that is set for speech."""
    return not samples.size or float(np.abs(samples).max()) < QUIETEST


@dataclass(frozen=True)
class Sound:
    """Something to hear that is neither A nor B: a take of the library, a point of a study, a part of a take."""

    samples: np.ndarray
    """(n,) float32 mono."""
    rate: int
    """In hertz."""
    title: str
    """What it is and where it comes from, in a line."""
    detail: str = ""
    """Its text, for tooltips."""
    key: str = ""
    """What it is known by: the id of its take, for one."""
    part_of: tuple[str, float] | None = None
    """The side that it is a part of, and where in that it begins, in seconds."""

    @cached_property
    def gain(self) -> float:
        """Linear; makes it as loud as other sounds that are played alone, but for what would clip. The beginning of a
        long one is measured."""
        matched = 10 ** (gain_to(ALONE_LUFS, self.samples[: MEASURED_SECONDS * self.rate], self.rate) / 20)
        return min(matched, FULL_SCALE / max(float(np.abs(self.samples).max(initial=0.0)), 1e-9))

    @cached_property
    def headroom(self) -> float:
        """Linear gain at which it does not clip."""
        return headroom(self.samples)

    @cached_property
    def envelope(self) -> Envelope:
        """Its outline, without the gain."""
        return Envelope(self.rate, self.samples)

    @cached_property
    def frames(self) -> np.ndarray:
        """What it is paired by with other sounds of the same words: see :mod:`paretone_app.audio.same_word`."""
        return frames_of(self.samples, self.rate)

    def worked_out(self) -> Sound:
        """This sound after its gain, outline and frames were worked out, which takes a moment: for another thread."""
        _ = self.gain, self.headroom, self.envelope, self.frames
        return self

    @property
    def seconds(self) -> float:
        """Its length."""
        return len(self.samples) / self.rate
