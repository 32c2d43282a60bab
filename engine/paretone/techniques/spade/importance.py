"""Importance of each layer: divergence and word error rate without it, and the change of direction by it.

The divergence needs no audio and one pass a layer: the cheap proxy. The word error rate is the paper's measure (WLI);
it is dominated by noise on few utterances, so it comes with an interval, and its ranking too.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from paretone.measure.estimates import PERCENTILES, ends, picks
from paretone.models.files.layer_importance import LayerImportance

DRAWS = 2000


def bootstrapped(
    measure: str, each: np.ndarray, weights: np.ndarray | None = None, baseline: float = 0.0, draws: int = DRAWS
) -> LayerImportance:
    """The importance that results from ``each`` (utterances, layers): mean over utterances, weighted by ``weights``
    (utterances,), with 95 % intervals of the means and of the ranks over resampled utterances.

    For a word error rate, ``each`` holds errors a word of a sentence and ``weights`` its number of words.
    """
    utterances = len(each)
    weights = np.ones(utterances) if weights is None else np.asarray(weights, float)
    chosen = picks(utterances, draws)
    drawn = (each * weights[:, None])[chosen].sum(1) / weights[chosen].sum(1)[:, None]
    # Equal layers share all the ranks that they take up together.
    larger = (drawn[:, None, :] > drawn[:, :, None]).sum(2)
    at_least = (drawn[:, None, :] >= drawn[:, :, None]).sum(2) - 1
    low, high = ends(drawn)
    first = np.percentile(larger, PERCENTILES[0], axis=0, method="nearest")
    last = np.percentile(at_least, PERCENTILES[1], axis=0, method="nearest")
    means = (each * weights[:, None]).sum(0) / weights.sum()
    return LayerImportance(
        measure,
        _floats(means),
        _floats(low),
        _floats(high),
        tuple((int(one), int(two)) for one, two in zip(first, last, strict=True)),
        baseline,
        utterances,
    )


def _floats(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.5g}") for value in values)
