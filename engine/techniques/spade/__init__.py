"""SPADE: structured pruning and adaptive distillation. A student that has only the layers that matter.

What is removed was measured (:mod:`.importance`, :mod:`.record`); what is left over either speaks as it is, or has
learnt from the whole model what the removed layers did (:mod:`engine.training.spade`). The recovered student is the
technique's artefact.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import SettingError
from engine.setting.knobs import Choice, Knob, Number, Values
from engine.techniques.base import Job, Paper, Technique

NAME = "spade"
RECOVERED, PARTLY, NONE = "recovered", "partly", "none"


@dataclass(frozen=True)
class LayerList(Knob):
    """Numbers of layers, counted from 0 and separated by commas; ``""`` where they follow from something else."""

    def check(self, value: object) -> str:
        try:
            layers = parsed_layers(value) if isinstance(value, str) else None
        except ValueError:
            layers = None
        if layers is None:
            raise SettingError(f"{self.title} must be layer numbers separated by commas, such as 0,1,5, not {value!r}.")
        return ",".join(map(str, layers))


def parsed_layers(text: str) -> tuple[int, ...]:
    """The layers that ``text`` lists, in order, each once. Raises :class:`ValueError`."""
    layers = sorted({int(part) for part in text.split(",") if part.strip()})
    if layers and layers[0] < 0:
        raise ValueError(f"{layers[0]} is no layer")
    return tuple(layers)


def describe(knobs: Values) -> str:
    """What is kept."""
    kept = parsed_layers(str(knobs["layers"]))
    count = len(kept) or knobs["depth"]
    chosen = "selected by hand" if kept else f"the most important one{'s' * (count != 1)}"
    state = {RECOVERED: "recovered", PARTLY: "partly recovered", NONE: "pruned only"}[str(knobs["recovery"])]
    return f"{count} layer{'s' * (count != 1)}, {chosen}, {state}"


TECHNIQUE = Technique(
    name=NAME,
    title="SPADE (fewer layers)",
    summary="Leaves out the layers that matter least; a student that has learnt from the whole model speaks instead.",
    paper=Paper(
        "SPADE: Structured Pruning and Adaptive Distillation for Efficient LLM-TTS",
        "arXiv 2509.20802",
    ),
    families=("language",),
    place=170,
    benches=(("spade", "engine.techniques.spade.benches.spade"),),
    views=(
        "engine.techniques.spade.views.layer_importance",
        "engine.techniques.spade.views.depth",
    ),
    commands=("engine.techniques.spade.commands.measure_layers", "engine.techniques.spade.commands.train"),
    jobs=(
        Job(
            "importance",
            "Measuring the layers",
            "engine.techniques.spade.requests:ImportanceRequest",
            "engine.techniques.spade.jobs:importance",
            finds_weights=True,
        ),
        Job(
            "train",
            "Preparing speech",
            "engine.techniques.spade.requests:StudentRequest",
            "engine.techniques.spade.jobs:train",
            on_loaded_model=False,
            finds_weights=True,
        ),
    ),
    prepared_by="training",
    knobs=(
        Number(
            "depth",
            "Layers kept",
            "How many layers speak. A recovered student has to be trained for each number; pruned only takes any.",
            default=6,
            minimum=1,
            maximum=64,
            whole=True,
        ),
        Choice(
            "recovery",
            "Recovery",
            "Whether the layers that are left have learnt what the removed ones did: hear what pruning alone does, "
            "what some minutes of distillation bring back, and the student at the end of it.",
            default=RECOVERED,
            values=(NONE, PARTLY, RECOVERED),
            titles=("Pruned only", "After some minutes", "Recovered"),
        ),
        LayerList(
            "layers",
            "Layers by hand",
            "Which layers stay, by number from 0, separated by commas; empty for the most important ones by "
            "measurement. Decides over the number above.",
            default="",
        ),
    ),
    describe=describe,
)
