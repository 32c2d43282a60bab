"""Average velocity's training request. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass

from paretone.models.catalogue import F5, CatalogueEntry
from paretone.setting.knobs import NO_VALUES, Values
from paretone.training.requests import FineTuningRequest

DISPLACEMENT, MEAN_FLOW = METHODS = ("displacement", "mean-flow")
"""Copying how far the model goes (IntMeanFlow), and MeanFlow's own loss."""
MOST_EVALUATIONS = 4
HIGHEST_TEMPERATURE = 1.5
TEACHER_STEPS, FEWEST_STEPS = 8, 2
"""Steps of the frozen model that one evaluation from noise to speech replaces in training: as a rule, and at least."""
SINGLE_SHARE = 0.45
"""Share of the steps that learn a synthesis of one evaluation, as a rule."""


@dataclass(frozen=True, kw_only=True)
class AverageVelocityRequest(FineTuningRequest):
    """Fine-tune ``model`` so that few evaluations speak as many guided steps do. Where a ``learning_rate`` is given and
    no ``matrix_rate``, AdamW moves everything. The result is :class:`paretone.training.requests.Trained`."""

    guidance: Values = NO_VALUES
    """Options of the guidance to include; those that are not given are the model's usual ones."""
    method: str = DISPLACEMENT
    teacher_steps: int = TEACHER_STEPS
    """Steps of the model's own that one evaluation from noise to speech replaces in training; fewer for parts."""
    uses: int = 1
    """Training steps that learn from each displacement of the frozen model's: more are cheaper than new ones."""
    single_share: float = SINGLE_SHARE
    """Share of the steps that learn a synthesis of one evaluation."""
    temperature: float = 1.0
    """Scale of the initial noise that the weights are to be used with; they are trained with all of it."""
    initial: str = ""
    """File of such weights, made from the same checkpoint, to start from; else from the model's own."""


def why_not_trained(chosen: CatalogueEntry) -> str:
    """Why weights of a model of the catalogue cannot be trained, as a sentence, or ``""``."""
    if chosen.kind == F5 or chosen.loader == "megatts3" or chosen.mel_steps:
        return ""
    return f"{chosen.title} cannot be trained here, only F5-TTS, MegaTTS 3 and the flow of CosyVoice 2."
