"""Similarity of a module's outputs between steps: figure 7 of the DiTReducio paper."""

from __future__ import annotations

from paretone.setting.knobs import Effect, Knob, Number
from paretone.views.figure import Axis, HeatMap
from paretone.views.view import Findings, Stages, Task, View

DEPTHS = (0.45, 0.90)
"""The paper looks at layers 10 and 20 of F5-TTS's 22, and at 10 and 22 of MegaTTS 3's 24."""


def knobs(layers: int) -> tuple[Knob, ...]:
    """The two layers that are looked at."""
    titles = {"first_layer": "First layer", "second_layer": "Second layer"}
    return tuple(
        Number(
            name,
            title,
            "Number of the layer, from 1 at the input.",
            default=max(1, round(depth * layers)),
            minimum=1,
            maximum=layers,
            effect=Effect.NEXT_VIEW,
            whole=True,
        )
        for (name, title), depth in zip(titles.items(), DEPTHS, strict=True)
    )


def compute(task: Task) -> Findings:
    """One sampling run; the first branch's outputs of the chosen layers are kept and compared."""
    import torch

    from paretone.techniques.ditreducio.views.outputs import MODULES, run_through, target_of

    target = target_of(task)
    layers = sorted({int(task.knobs["first_layer"]), int(task.knobs["second_layer"])})
    kept: dict[tuple[int, str], list[torch.Tensor]] = {(layer, name): [] for layer in layers for name in MODULES}
    items = len(target.noise)

    def see(step: int, layer: int, name: str, output: torch.Tensor) -> None:
        if (layer + 1, name) in kept:
            row = torch.nn.functional.normalize(output[:items].float().flatten(), dim=0)
            # Sixteen bits keep cosines to six digits and the memory small.
            kept[layer + 1, name].append(row.to(torch.bfloat16))

    task.observer.status("Comparing module outputs")
    with torch.inference_mode():
        run_through(
            target,
            Stages(task.observer, target.steps * target.backbone.layers),
            see,
        )
        grams = {key: _cosines(rows) for key, rows in kept.items()}
    steps = tuple(float(step + 1) for step in range(target.steps))
    panels = tuple(
        HeatMap(
            f"{MODULES[name]}, layer {layer}",
            Axis("Step"),
            Axis("Step"),
            Axis("Cosine similarity"),
            steps,
            steps,
            gram,
        )
        for (layer, name), gram in grams.items()
    )
    return Findings(panels, _caption(panels, target.steps))


def _cosines(rows: list) -> tuple[tuple[float, ...], ...]:
    """Cosine similarity of every pair of ``rows``, which have unit length but for rounding."""
    found = [[1.0] * len(rows) for _ in rows]
    for later, row in enumerate(rows):
        for earlier in range(later):
            pair = row.float(), rows[earlier].float()
            cosine = float(pair[0] @ pair[1] / (pair[0].norm() * pair[1].norm()).clamp_min(1e-12))
            found[later][earlier] = found[earlier][later] = cosine
    return tuple(map(tuple, found))


def _caption(panels: tuple[HeatMap, ...], steps: int) -> str:
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


VIEW = View(
    name="temporal-redundancy",
    title="Temporal redundancy",
    question="How similar are a module's outputs at different steps?",
    source="DiTReducio (arXiv 2509.09748), figure 7",
    families=("flow",),
    knobs=knobs,
    compute=compute,
)
