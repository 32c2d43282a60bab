"""Similarity of the guidance branches: figure 8 of the DiTReducio paper."""

from __future__ import annotations

from paretone.errors import SettingError
from paretone.views.figure import Axis, HeatMap
from paretone.views.view import Findings, Stages, Task, View
from paretone.wording import percent

BRANCHES = {
    2: ("conditional", "unconditional"),
    3: ("speaker and text", "text only", "unconditional"),
}
"""Inputs of the branches, by their number."""


def compute(task: Task) -> Findings:
    """One sampling run; the first branch's output is compared with each other one's, layer by layer."""
    import torch

    from paretone.techniques.ditreducio.views.outputs import MODULES, cosine_similarity, run_through, target_of

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
        rows = output.split(items)
        for other in range(1, target.branches):
            found[other, name][layer][step] = cosine_similarity(rows[0], rows[other])

    task.observer.status("Comparing the branches")
    with torch.inference_mode():
        run_through(target, Stages(task.observer, steps * layers), see)
    names = BRANCHES.get(target.branches, tuple(f"branch {one + 1}" for one in range(target.branches)))
    panels = tuple(
        HeatMap(
            f"{MODULES[name]}: {names[0]} and {names[other]}",
            Axis("Step"),
            Axis("Layer"),
            Axis("Cosine similarity"),
            tuple(float(step + 1) for step in range(steps)),
            tuple(float(layer + 1) for layer in range(layers)),
            tuple(map(tuple, values)),
        )
        for (other, name), values in found.items()
    )
    return Findings(panels, f"Outputs before the gate. {' '.join(map(_words, panels))}")


def _words(panel: HeatMap) -> str:
    values = [value for row in panel.values for value in row]
    cells = [(layer, step) for layer in range(len(panel.rows)) for step in range(len(panel.columns))]
    least = min(cells, key=lambda cell: panel.values[cell[0]][cell[1]])
    high = sum(value > 0.9 for value in values) / len(values)
    return (
        f"{panel.title}: {sum(values) / len(values):.3f} on average, above 0.9 in {percent(high)} of the cells, least "
        f"{panel.values[least[0]][least[1]]:.3f} in layer {least[0] + 1} at step {least[1] + 1}."
    )


VIEW = View(
    name="branch-redundancy",
    title="Branch redundancy",
    question="Where are the outputs of the guidance branches nearly equal?",
    source="DiTReducio (arXiv 2509.09748), figure 8",
    families=("flow",),
    compute=compute,
)
