"""How exactly the bundled models are told in training when each phone sounds.

A model with every phone at its own frames learns to speak in a fraction of the time, so training begins that way. Later
it varies from item to item: exact phones, phones of inexact length within a word, or phones spread evenly over their
word. The less exact the alignment, the more the model decides itself, and it decides better with more steps.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from paretone.front_end.phones import TimedPhone, words

Alignment = Callable[[Sequence[TimedPhone]], tuple[TimedPhone, ...]]
"""Maps phones to new times."""


def respaced(
    phones: Sequence[TimedPhone],
    weights: Callable[[np.ndarray], np.ndarray],
    groups: Callable[[Sequence[TimedPhone]], Iterator[list[int]]] = words,
) -> tuple[TimedPhone, ...]:
    """Redistribute lengths within words, or other ``groups``, whose total stays: in proportion to ``weights`` of the
    lengths (n,) of a group's phones."""
    spaced = list(phones)
    for group in groups(phones):
        start, end = phones[group[0]][1], phones[group[-1]][2]
        shares = weights(np.array([phones[place][2] - phones[place][1] for place in group]))
        edges = (start + np.cumsum([0.0, *shares]) * (end - start) / shares.sum()).tolist()
        for place, first, last in zip(group, edges[:-1], edges[1:], strict=True):
            spaced[place] = (phones[place][0], first, last)
    return tuple(spaced)


@dataclass(frozen=True)
class AlignmentOptions:
    """Shares of the kinds of alignment."""

    exact_until: float = 0.4
    """Share of the budget with every phone at its own frames."""
    inexact_share: float = 0.45
    """Later share of items whose phones have inexact lengths within their words."""
    inexactness: float = 0.4
    """Standard deviation of the logarithm of these lengths."""
    evened_share: float = 0.25
    """Later share of items whose phones are spread evenly over their words."""


def drawn_alignment(options: AlignmentOptions, progress: float, generator: torch.Generator) -> Alignment:
    """Alignment of the next item after the share ``progress`` of the budget."""
    kind = float(torch.rand((), generator=generator)) if progress >= options.exact_until else 1.0
    if kind < options.evened_share:
        return evened

    def inexact(lengths: np.ndarray) -> np.ndarray:
        return lengths * np.exp(options.inexactness * torch.randn(len(lengths), generator=generator).numpy())

    if kind < options.evened_share + options.inexact_share:
        return lambda phones: respaced(phones, inexact)
    return tuple


def evened(phones: Sequence[TimedPhone]) -> tuple[TimedPhone, ...]:
    return respaced(phones, np.ones_like)
