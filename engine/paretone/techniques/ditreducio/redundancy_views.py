"""Views of redundancy: outputs from step to step and from branch to branch, diagonal attention, and attention maps
(figures 7, 8, 4 and 3 of the DiTReducio paper). Torch-free at import."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from paretone.errors import SettingError
from paretone.measure.estimates import wilson_interval
from paretone.observer import Work
from paretone.setting.knobs import Choice, Effect, amount, defaults
from paretone.speaking import scripted
from paretone.views.figure import Axis, Bars, BarSeries, HeatMap
from paretone.views.view import Findings, Stages, Task, View, count_knob
from paretone.wording import percent


def branch_names(count: int) -> tuple[str, ...]:
    """Inputs of each of ``count`` branches."""
    known = {2: ("conditional", "unconditional"), 3: ("speaker and text", "text only", "unconditional")}
    return known.get(count, tuple(f"branch {one + 1}" for one in range(count)))


def compute_branches(task: Task) -> Findings:
    """Compare the first branch's output with each other branch's, layer by layer, over one sampling run."""
    import torch

    from paretone.techniques.ditreducio.probing import MODULES, run_through, target_of

    target = target_of(task)
    if target.branches == 1:
        raise SettingError(
            "Only one branch runs under this setting, so there is nothing to compare it with; choose a guidance above "
            "0 and no weights that replace it."
        )
    layers, steps, items = target.backbone.layers, target.steps, len(target.noise)
    found = {
        (other, name): [[float("nan")] * steps for _ in range(layers)]
        for other in range(1, target.branches)
        for name in MODULES
    }

    def see(step: int, layer: int, name: str, output: torch.Tensor) -> None:
        first, *others = output.double().split(items)
        for other, one in enumerate(others, start=1):
            cosine = torch.nn.functional.cosine_similarity(first.flatten(), one.flatten(), dim=0)
            found[other, name][layer][step] = cosine.item()

    task.observer.status("Comparing the branches")
    with torch.inference_mode():
        run_through(target, Stages(task.observer, steps * layers), see)
    names = branch_names(target.branches)
    panels = tuple(
        HeatMap.by_layer(f"{MODULES[name]}: {names[0]} and {names[other]}", "Cosine similarity", values)
        for (other, name), values in found.items()
    )
    return Findings(panels, f"Outputs before the gate. {' '.join(map(_words, panels))}")


def _words(panel: HeatMap) -> str:
    values = np.array(panel.values)
    layer, step = np.unravel_index(values.argmin(), values.shape)
    return (
        f"{panel.title}: {values.mean():.3f} on average, above 0.9 in {percent((values > 0.9).mean())} of the cells, "
        f"least {values.min():.3f} in layer {layer + 1} at step {step + 1}."
    )


BRANCH_REDUNDANCY = View(
    name="branch-redundancy",
    title="Branch redundancy",
    question="Where are the outputs of the guidance branches nearly equal?",
    source="DiTReducio (arXiv 2509.09748), figure 8",
    families=("flow",),
    compute=compute_branches,
)


def compute_similarity(task: Task) -> Findings:
    """Measure similarities in one run, and every layer's temporal skip at every step in another."""
    import torch

    from paretone.sampling.actions import SkipAction
    from paretone.techniques import ditreducio
    from paretone.techniques.ditreducio.probing import target_of
    from paretone.techniques.ditreducio.trajectory import Trajectory

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
                    redundancies[layer][step] = 1 - trajectory.error(next(trajectory.outcomes(layer, (SkipAction.TS,))))
                    work.done(layers - layer)
                trajectory.settle(layer, SkipAction.NONE)
            trajectory.finish()
    pairs = [
        (similarities[layer][step], redundancies[layer][step]) for layer in range(layers) for step in range(1, steps)
    ]
    redundant_from = float(task.knobs["redundant_from"])
    panels = (
        shares(pairs, redundant_from, float(task.knobs["width"])),
        HeatMap.by_layer("Diagonal similarity", "Cosine similarity", similarities),
        HeatMap.by_layer("Temporal redundancy R", "R", redundancies),
    )
    return Findings(panels, _similarity_caption(pairs, redundant_from))


def shares(pairs: Sequence[tuple[float, float]], redundant_from: float, width: float) -> Bars:
    """Share of redundant pairs in every interval, from pairs of similarity and redundancy."""
    count = max(1, math.floor(max((one for one, _ in pairs), default=0.0) / width + 1e-9) + 1)
    inside: list[list[bool]] = [[] for _ in range(count)]
    for similarity, redundancy in pairs:
        index = math.floor(similarity / width + 1e-9)
        inside[min(max(index, 0), count - 1)].append(redundancy > redundant_from)
    groups = tuple(f"{index * width:.2f}–{(index + 1) * width:.2f}" for index in range(count))
    bounds = [wilson_interval(sum(one), len(one)) if one else (math.nan, math.nan) for one in inside]
    series = BarSeries(
        "Redundant pairs",
        tuple(100 * sum(one) / len(one) if one else math.nan for one in inside),
        tuple(100 * low for low, _ in bounds),
        tuple(100 * high for _, high in bounds),
        tuple(f"{sum(one)} of {len(one)} pairs" for one in inside),
    )
    return Bars(
        f"Pairs with R above {redundant_from:g}",
        Axis("Diagonal similarity of the attention"),
        Axis("Redundant pairs", "%"),
        groups,
        (series,),
    )


def _similarity_caption(pairs: Sequence[tuple[float, float]], redundant_from: float) -> str:
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


ATTENTION_SIMILARITY = View(
    name="attention-similarity",
    title="Redundancy by attention",
    question="Are layers with diagonal attention more redundant than others?",
    source="DiTReducio (arXiv 2509.09748), figure 4",
    families=("flow",),
    knobs=lambda layers: (
        amount(
            "redundant_from",
            "Redundant above",
            "A layer-step pair is highly redundant when 1 − mean absolute change of the output lies above this.",
            default=0.9,
            between=(0.0, 1.0),
            symbol="R",
            effect=Effect.NEXT_VIEW,
            step=0.01,
        ),
        amount(
            "width",
            "Interval width",
            "Width of the intervals of diagonal similarity.",
            default=0.02,
            between=(0.01, 0.5),
            effect=Effect.NEXT_VIEW,
            step=0.01,
        ),
    ),
    compute=compute_similarity,
)


def compute_temporal(task: Task) -> Findings:
    """Compare the first branch's outputs of the chosen layers at all pairs of steps, over one sampling run."""
    import torch

    from paretone.techniques.ditreducio.probing import MODULES, run_through, target_of

    target = target_of(task)
    layers = sorted({int(task.knobs["first_layer"]), int(task.knobs["second_layer"])})
    kept: dict[tuple[int, str], list[torch.Tensor]] = {(layer, name): [] for layer in layers for name in MODULES}
    items = len(target.noise)

    def see(step: int, layer: int, name: str, output: torch.Tensor) -> None:
        if (layer + 1, name) in kept:
            # bfloat16 keeps cosines to six digits and the memory small.
            kept[layer + 1, name].append(output[:items].flatten().to(torch.bfloat16))

    task.observer.status("Comparing module outputs")
    with torch.inference_mode():
        run_through(target, Stages(task.observer, target.steps * target.backbone.layers), see)
    steps = tuple(float(step + 1) for step in range(target.steps))
    panels, axes = [], (Axis("Step"), Axis("Step"), Axis("Cosine similarity"))
    for (layer, name), rows in kept.items():
        # Part by part, so that only one is in float32 at a time.
        parts = (part.float() for part in torch.stack(rows).split(1 << 20, dim=1))
        gram = torch.stack([part @ part.T for part in parts]).sum(0)
        lengths = gram.diagonal().sqrt().clamp_min(1e-12)
        cosines = tuple(map(tuple, (gram / lengths / lengths[:, None]).fill_diagonal_(1.0).tolist()))
        panels.append(HeatMap(f"{MODULES[name]}, layer {layer}", *axes, steps, steps, cosines))
    return Findings(tuple(panels), _temporal_caption(panels, target.steps))


def _temporal_caption(panels: Sequence[HeatMap], steps: int) -> str:
    if steps < 2:
        return "A single step cannot repeat another; choose more steps."
    parts, nearest = [], []
    for panel in panels:
        adjacent = [panel.values[step][step - 1] for step in range(1, steps)]
        least = min(range(len(adjacent)), key=adjacent.__getitem__)
        nearest.append(sum(adjacent) / len(adjacent))
        parts.append(
            f"{panel.title}: neighbours {nearest[-1]:.3f} on average, least {adjacent[least]:.3f} "
            f"(steps {least + 1} and {least + 2}), first and last {panel.values[0][-1]:.2f}"
        )
    most = panels[max(range(len(panels)), key=nearest.__getitem__)].title
    return (
        "Cosine similarity of the conditional branch's output at every pair of steps, before the gate. "
        f"{'; '.join(parts)}. Most redundant: {most}."
    )


TEMPORAL_REDUNDANCY = View(
    name="temporal-redundancy",
    title="Temporal redundancy",
    question="How similar are a module's outputs at different steps?",
    source="DiTReducio (arXiv 2509.09748), figure 7",
    families=("flow",),
    # The paper's layers: 10 and 20 of F5-TTS's 22, and 10 and 22 of MegaTTS 3's 24.
    knobs=lambda layers: tuple(
        count_knob(name, title, "Number of the layer, from 1 at the input.", max(1, round(depth * layers)), layers)
        for name, title, depth in (("first_layer", "First layer", 0.45), ("second_layer", "Second layer", 0.90))
    ),
    compute=compute_temporal,
)


LINEAR, LOGARITHMIC = "linear", "logarithmic"


def compute_maps(task: Task) -> Findings:
    """Run up to the step without techniques, and show the layer's attention there."""
    layer, step = int(task.knobs["layer"]), int(task.knobs["step"])
    script = scripted(task.flow, task.utterance.text, task.utterance.voice, task.setting.baseline)
    work = Stages(task.observer, step)
    observer = work.part(step - 1, f"Capturing the attention of layer {layer} at step {step}")
    captured = task.flow.capture_attention(script, layer - 1, step - 1, observer)
    work.done(1)
    logarithmic = task.knobs["scale"] == LOGARITHMIC
    maps = pooled(captured.maps, int(task.knobs["cells"]))
    names, cells = branch_names(len(maps)), maps.shape[-1]
    width = -(-captured.frames // cells)
    places = tuple(1.0 + width * cell for cell in range(cells))
    colour = Axis("log10 of the attention" if logarithmic else "Attention")
    panels = []
    for name, one in zip(names if len(maps) > 1 else ("attention",), maps, strict=True):
        shown = np.log10(np.maximum(one, 1e-6)) if logarithmic else one
        values = tuple(map(tuple, shown.astype(float).tolist()))
        title = f"{name.capitalize()}: layer {layer}, step {step}"
        panels.append(HeatMap(title, Axis("Key", "frame"), Axis("Query", "frame"), colour, places, places, values))
    alike = ", ".join(f"{name} {one:.3f}" for name, one in zip(names, captured.similarities, strict=False))
    drawn = "" if cells == captured.frames else f", drawn as {cells} × {cells} cells"
    return Findings(
        tuple(panels),
        f"Mean over the heads; {captured.frames} frames{drawn}. The voice's are the first {captured.prompt_frames}. "
        f"Cosine similarity with the diagonal, as in the check phase: {alike}.",
    )


def pooled(maps: np.ndarray, most: int) -> np.ndarray:
    """Maps (branches, queries, keys) of ``most`` cells a side at most: queries by the mean, keys by the sum: rows sum
    to one."""
    frames = maps.shape[-1]
    width = -(-frames // most)
    starts = np.arange(0, frames, width)
    counts = np.diff(np.append(starts, frames))
    summed = np.add.reduceat(np.add.reduceat(maps.astype(np.float64), starts, axis=2), starts, axis=1)
    return summed / counts[None, :, None]


ATTENTION_MAPS = View(
    name="attention-maps",
    title="Attention maps",
    question="What does a layer attend to at a step: its neighbours, or stripes?",
    source="DiTReducio (arXiv 2509.09748), figure 3",
    families=("flow",),
    # By default the layer and step of the paper's diagonal pattern.
    knobs=lambda layers: (
        count_knob("layer", "Layer", "Number of the layer, from 1 at the input.", min(5, layers), layers),
        count_knob("step", "Step", "Number of the sampling step, from 1.", 1, 1000),
        count_knob(
            "cells",
            "Cells",
            "Most queries and keys that are drawn; longer speech is pooled: queries by the mean, keys by the sum.",
            64,
            256,
        ),
        Choice(
            "scale",
            "Scale",
            "Attention, or its decimal logarithm, which shows weak stripes beside a strong diagonal.",
            default=LINEAR,
            effect=Effect.NEXT_VIEW,
            values=(LINEAR, LOGARITHMIC),
            titles=("Linear", "Logarithmic"),
        ),
    ),
    compute=compute_maps,
)
