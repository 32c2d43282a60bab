"""Whether layers that attend diagonally repeat themselves: figure 4 of the DiTReducio paper.

For every layer and step: how diagonal its attention is (the check phase's measure), and by how much the backbone's
output changes when only this layer reuses what it put out at the step before (equation 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from paretone.measure.estimates import wilson_interval
from paretone.setting.knobs import Effect, Knob, Number, defaults
from paretone.views.figure import Axis, Bars, BarSeries, HeatMap
from paretone.views.view import Findings, Task, View
from paretone.wording import percent


def knobs(layers: int) -> tuple[Knob, ...]:
    """The redundancy from which a pair counts as redundant, and the width of the intervals."""
    return (
        Number(
            "redundant_from",
            "Redundant above",
            "A layer-step pair is highly redundant when 1 − mean absolute change of the output lies above this.",
            default=0.9,
            symbol="R",
            maximum=1.0,
            minimum=0.0,
            effect=Effect.NEXT_VIEW,
            step=0.01,
        ),
        Number(
            "width",
            "Interval width",
            "Width of the intervals of diagonal similarity.",
            default=0.02,
            minimum=0.01,
            maximum=0.5,
            effect=Effect.NEXT_VIEW,
            step=0.01,
        ),
    )


def compute(task: Task) -> Findings:
    """One run measures the similarities, another one every layer's temporal skip at every step."""
    import torch

    from paretone.sampling.actions import SkipAction
    from paretone.techniques import ditreducio
    from paretone.techniques.ditreducio.trajectory import Trajectory, Work
    from paretone.techniques.ditreducio.views.outputs import target_of

    target = target_of(task)
    layers, steps = target.backbone.layers, target.steps
    work = Work(task.observer, steps * layers * 2 + (steps - 1) * layers * (layers + 1) // 2)
    trajectory = Trajectory(target, defaults(ditreducio.TECHNIQUE.knobs), work)
    similarities, redundancies = [[[math.nan] * steps for _ in range(layers)] for _ in range(2)]
    with torch.inference_mode():
        task.observer.status("Measuring the diagonal similarity of the attention")
        for step in range(steps):
            for layer, similarity in enumerate(trajectory.explore(step)):
                similarities[layer][step] = float(similarity)
        task.observer.status("Measuring the effect of repeated layers")
        for step in range(steps):
            trajectory.begin(step, (SkipAction.NONE,) * layers)
            for layer in range(layers):
                if step:
                    outcome = next(trajectory.outcomes(layer, (SkipAction.TS,)))
                    redundancies[layer][step] = 1 - trajectory.error(outcome)
                    work.done(layers - layer)
                trajectory.settle(layer, SkipAction.NONE)
            trajectory.finish()
    return _found(similarities, redundancies, float(task.knobs["redundant_from"]), float(task.knobs["width"]))


def _found(
    similarities: Sequence[Sequence[float]],
    redundancies: Sequence[Sequence[float]],
    redundant_from: float,
    width: float,
) -> Findings:
    pairs = [
        (similarities[layer][step], redundancies[layer][step])
        for layer in range(len(similarities))
        for step in range(1, len(similarities[layer]))
    ]
    bars, caption = shares(pairs, redundant_from, width)
    steps = tuple(float(step + 1) for step in range(len(similarities[0])))
    rows = tuple(float(layer + 1) for layer in range(len(similarities)))
    maps = tuple(
        HeatMap(title, Axis("Step"), Axis("Layer"), Axis(colour), steps, rows, tuple(map(tuple, values)))
        for title, colour, values in (
            ("Diagonal similarity", "Cosine similarity", similarities),
            ("Temporal redundancy R", "R", redundancies),
        )
    )
    return Findings((bars, *maps), caption)


def shares(pairs: Sequence[tuple[float, float]], redundant_from: float, width: float) -> tuple[Bars, str]:
    """From pairs of similarity and redundancy: the share of redundant ones in every interval, and what that shows."""
    count = max(1, math.floor(max((one for one, _ in pairs), default=0.0) / width + 1e-9) + 1)
    inside: list[list[bool]] = [[] for _ in range(count)]
    for similarity, redundancy in pairs:
        index = math.floor(similarity / width + 1e-9)
        inside[min(max(index, 0), count - 1)].append(redundancy > redundant_from)
    groups = tuple(f"{index * width:.2f}–{(index + 1) * width:.2f}" for index in range(count))
    percent = tuple(100 * sum(one) / len(one) if one else math.nan for one in inside)
    bounds = [wilson_interval(sum(one), len(one)) if one else (math.nan, math.nan) for one in inside]
    series = BarSeries(
        "Redundant pairs",
        percent,
        tuple(100 * low for low, _ in bounds),
        tuple(100 * high for _, high in bounds),
        tuple(f"{sum(one)} of {len(one)} pairs" for one in inside),
    )
    bars = Bars(
        f"Pairs with R above {redundant_from:g}",
        Axis("Diagonal similarity of the attention"),
        Axis("Redundant pairs", "%"),
        groups,
        (series,),
    )
    return bars, _caption(pairs, redundant_from)


def _caption(pairs: Sequence[tuple[float, float]], redundant_from: float) -> str:
    if not pairs:
        return "A single step cannot repeat another; choose more steps."
    redundant = [redundancy > redundant_from for _, redundancy in pairs]
    overall = sum(redundant) / len(pairs)
    words = (
        f"{sum(redundant)} of {len(pairs)} layer-step pairs ({percent(overall)}) are highly temporally redundant: "
        f"their output changes by less than {1 - redundant_from:.2g} on average when the layer alone "
        "repeats the step before."
    )
    ordered = sorted(range(len(pairs)), key=lambda index: pairs[index][0])
    half = len(ordered) // 2
    if half and 0 < sum(redundant) < len(pairs):
        parts = [[redundant[index] for index in part] for part in (ordered[:half], ordered[half:])]
        low, high = (sum(part) / len(part) for part in parts)
        less, more = (wilson_interval(sum(part), len(part)) for part in parts)
        trend = "no clear difference"
        if more[0] > less[1]:
            trend = "diagonal layers are more redundant, as in the paper"
        elif more[1] < less[0]:
            trend = "diagonal layers are less redundant, unlike in the paper"
        words += (
            f" Of the half with the more diagonal attention {percent(high)} are, of the other {percent(low)}: {trend}."
        )
    return f"{words} Bars: 95 % intervals (Wilson), as if pairs were independent."


VIEW = View(
    name="attention-similarity",
    title="Redundancy by attention",
    question="Are layers with diagonal attention more redundant than others?",
    source="DiTReducio (arXiv 2509.09748), figure 4",
    families=("flow",),
    knobs=knobs,
    compute=compute,
)
