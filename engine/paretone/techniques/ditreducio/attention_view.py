"""View of attention maps: one layer at one step, in every branch (figure 3 of the DiTReducio paper). Torch-free at
import."""

from __future__ import annotations

import numpy as np

from paretone.models.base import AttentionCapture
from paretone.setting.knobs import Choice, Effect, Knob
from paretone.speaking import scripted
from paretone.techniques.ditreducio.redundancy_views import branch_names
from paretone.views.figure import Axis, HeatMap
from paretone.views.view import Findings, Stages, Task, View, count_knob

LINEAR, LOGARITHMIC = "linear", "logarithmic"
_DECADES = 6
"""Smallest attention of the logarithmic scale, in decades below 1."""


def knobs(layers: int) -> tuple[Knob, ...]:
    """Layer and step, by default those of the paper's diagonal pattern, and the drawing."""
    pooled = "Most queries and keys that are drawn; longer speech is pooled: queries by the mean, keys by the sum."
    return (
        count_knob("layer", "Layer", "Number of the layer, from 1 at the input.", min(5, layers), layers),
        count_knob("step", "Step", "Number of the sampling step, from 1.", 1, 1000),
        count_knob("cells", "Cells", pooled, 64, 256),
        Choice(
            "scale",
            "Scale",
            "Attention, or its decimal logarithm, which shows weak stripes beside a strong diagonal.",
            default=LINEAR,
            effect=Effect.NEXT_VIEW,
            values=(LINEAR, LOGARITHMIC),
            titles=("Linear", "Logarithmic"),
        ),
    )


def compute(task: Task) -> Findings:
    """Run up to the step without techniques, and show the layer's attention there."""
    layer, step = int(task.knobs["layer"]), int(task.knobs["step"])
    setting = task.setting.baseline
    script = scripted(task.flow, task.utterance.text, task.utterance.voice, setting)
    work = Stages(task.observer, step)
    observer = work.part(step - 1, f"Capturing the attention of layer {layer} at step {step}")
    captured = task.flow.capture_attention(script, layer - 1, step - 1, observer)
    work.done(1)
    logarithmic = task.knobs["scale"] == LOGARITHMIC
    maps = pooled(captured.maps, int(task.knobs["cells"]))
    names = branch_names(len(maps))
    width = -(-captured.frames // maps.shape[-1])
    places = tuple(1.0 + width * cell for cell in range(maps.shape[-1]))
    colour = Axis("log10 of the attention" if logarithmic else "Attention")
    panels = []
    for name, one in zip(names if len(maps) > 1 else ("attention",), maps, strict=True):
        shown = np.log10(np.maximum(one, 10.0**-_DECADES)) if logarithmic else one
        values = tuple(map(tuple, shown.astype(float).tolist()))
        title = f"{name.capitalize()}: layer {layer}, step {step}"
        panels.append(HeatMap(title, Axis("Key", "frame"), Axis("Query", "frame"), colour, places, places, values))
    return Findings(tuple(panels), _caption(captured, names, maps.shape[-1]))


def pooled(maps: np.ndarray, most: int) -> np.ndarray:
    """Maps (branches, queries, keys) of at most ``most`` cells a side: queries by the mean, keys by the sum, so that
    rows still sum to one."""
    frames = maps.shape[-1]
    width = -(-frames // most)
    starts = np.arange(0, frames, width)
    counts = np.diff(np.append(starts, frames))
    summed = np.add.reduceat(np.add.reduceat(maps.astype(np.float64), starts, axis=2), starts, axis=1)
    return summed / counts[None, :, None]


def _caption(captured: AttentionCapture, names: tuple[str, ...], cells: int) -> str:
    alike = ", ".join(f"{name} {one:.3f}" for name, one in zip(names, captured.similarities, strict=False))
    drawn = "" if cells == captured.frames else f", drawn as {cells} × {cells} cells"
    return (
        f"Mean over the heads; {captured.frames} frames{drawn}. The voice's are the first {captured.prompt_frames}. "
        f"Cosine similarity with the diagonal, as in the check phase: {alike}."
    )


VIEW = View(
    name="attention-maps",
    title="Attention maps",
    question="What does a layer attend to at a step: its neighbours, or stripes?",
    source="DiTReducio (arXiv 2509.09748), figure 3",
    families=("flow",),
    knobs=knobs,
    compute=compute,
)
