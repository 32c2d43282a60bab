"""Average velocity's training request. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass

from engine.models.base import FLOW
from engine.models.catalogue import F5, CatalogueEntry
from engine.setting.knobs import NO_VALUES, Values
from engine.training.requests import TrainingRequest

DISPLACEMENT, MEAN_FLOW = METHODS = ("displacement", "mean-flow")
"""Copying how far the model goes (IntMeanFlow), and MeanFlow's own loss."""
MOST_EVALUATIONS = 4
TEACHER_STEPS, FEWEST_STEPS = 8, 2
"""Steps of the frozen model that one evaluation from noise to speech replaces in training: as a rule, and at least."""


@dataclass(frozen=True, kw_only=True)
class AverageVelocityRequest(TrainingRequest):
    """Fine-tune ``model`` on ``manifest`` so that few evaluations speak as many guided steps do; a bundled model,
    without one, on the kind of speech that it learnt from. ``folder`` and ``variant`` as in
    :class:`engine.session.commands.LoadModel`; the loaded model is not touched. The result is
    :class:`engine.training.requests.Trained`."""

    guidance: Values = NO_VALUES
    """Options of the guidance to include; those that are not given are the model's usual ones."""
    method: str = DISPLACEMENT
    variant: str = ""
    corpus: str = ""
    """Folder of a corpus of natural speech, for bundled models; ``""``: next to the work folder."""
    learning_rate: float | None = None
    """``None`` for the usual one of a model of this size."""
    matrix_rate: float | None = None
    """Muon's learning rate for the matrices of the layers; ``None`` for the usual one, or, if ``learning_rate`` is
    given, for AdamW on everything."""
    frames: int = 1_800
    """The model's frames of a step."""
    teacher_steps: int = TEACHER_STEPS
    """Steps of the model's own that one evaluation from noise to speech replaces in training; fewer for parts."""
    seed: int = 1


def why_not_trained(chosen: CatalogueEntry) -> str:
    """Why weights of a model of the catalogue cannot be trained, as a sentence, or ``""``."""
    if chosen.family == FLOW and (chosen.kind == F5 or (chosen.loader == "megatts3" and chosen.bundled)):
        return ""
    return f"{chosen.title} cannot be trained here, only F5-TTS and the bundled MegaTTS 3."
