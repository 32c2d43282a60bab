"""Labels of trained weights."""

from __future__ import annotations

from pathlib import Path

from paretone.models.base import DraftWeights, IntervalWeights, TrainedWeights, WeightSet
from paretone.paths import resource
from paretone_app.numbers import fixed, general


def weights_title(one: TrainedWeights) -> str:
    """Label of weights, with their origin: shipped, or the file name."""
    path = Path(one.path)
    whose = "shipped" if path.is_relative_to(resource("models")) else path.stem
    if isinstance(one, WeightSet):
        return f"w = {fixed(one.weight, 2)}, {one.method} ({whose})"
    if isinstance(one, IntervalWeights):
        guidance = ", ".join(f"{name} {general(value, 3)}" for name, value in one.guidance.items())
        return f"{guidance}, {one.method} ({whose})"
    if isinstance(one, DraftWeights):
        return f"Draft with {len(one.retained)} layers ({whose})"
    learnt = f"{general(one.minutes, 3)} min of training" if one.minutes else "not retrained"
    return f"Student with {one.depth} layers, {learnt} ({whose})"
