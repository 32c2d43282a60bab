"""Figures of searches, as people know them. Torch-free."""

from __future__ import annotations

from paretone.measure.metrics import HIGHER, metric
from paretone.sampling.grid_search import Value
from paretone.techniques.searched_grid import DISTANCE


def shown(value: Value, objective: str) -> float:
    """The figure that a search goes by, as people know it: judges' figures that are better if higher have their
    sign back."""
    higher = objective != DISTANCE and metric(objective).better == HIGHER
    return -value[0] if higher else value[0]
