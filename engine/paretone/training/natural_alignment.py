"""How exactly the text of natural speech is aligned in training.

A model that has every phone at its own frames learns to speak in a fraction of the time, so that is how training
begins. Then it changes from item to item: every phone at its own frames, phones whose lengths inside of a word are
inexact, or phones spread evenly over their word. The model has to decide what is aligned less exactly, and decides
better with more steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from paretone.front_end.phones import TimedPhone, phrases, respaced

Alignment = Callable[[Sequence[TimedPhone]], tuple[TimedPhone, ...]]
"""Other times for phones."""


@dataclass(frozen=True)
class AlignmentOptions:
    """How often the text is aligned how."""

    exact_until: float = 0.4
    """Share of the budget up to which every phone is at its own frames."""
    inexact_share: float = 0.45
    """Share of items, from then on, whose phones have inexact lengths inside of their words."""
    inexactness: float = 0.4
    """Standard deviation of the logarithm of these lengths."""
    evened_share: float = 0.25
    """Share of items, likewise, whose phones are spread evenly over their words."""


def drawn_alignment(options: AlignmentOptions, progress: float, generator: torch.Generator) -> Alignment:
    """The alignment of the next item, when the share ``progress`` of the budget is spent."""
    kind = float(torch.rand((), generator=generator)) if progress >= options.exact_until else 1.0
    if kind < options.evened_share:
        return evened
    if kind < options.evened_share + options.inexact_share:
        return lambda phones: respaced(phones, lambda lengths: _inexact(lengths, options.inexactness, generator))
    return tuple


def evened(phones: Sequence[TimedPhone]) -> tuple[TimedPhone, ...]:
    """``phones``, those of each word all of one length."""
    return respaced(phones, np.ones_like)


def evened_phrases(phones: Sequence[TimedPhone]) -> tuple[TimedPhone, ...]:
    """``phones``, those of each phrase all of one length. No training has these."""
    return respaced(phones, np.ones_like, phrases)


def _inexact(lengths: np.ndarray, deviation: float, generator: torch.Generator) -> np.ndarray:
    return lengths * np.exp(deviation * torch.randn(len(lengths), generator=generator).numpy())
