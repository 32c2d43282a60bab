"""SPADE's requests and results: measuring, training. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paretone.models.base import Utterance
from paretone.models.files.layer_importance import ImportanceRecord
from paretone.setting.setting import Setting
from paretone.training.requests import CompanionRequest

MEASURED_SENTENCES = 8
"""Number of sentences, in every voice, to measure layers on, as a rule."""


@dataclass(frozen=True)
class ImportanceRequest:
    """Measure how much each layer of the loaded language model matters, and keep the record in the user's place for the
    model. ``measures`` are among :data:`paretone.models.files.layer_importance.MEASURES`; the word error rate speaks
    ``utterances`` with every layer left out in turn, which takes long. The result is :class:`LayersMeasured`."""

    activity: ClassVar[str] = "measuring the layers"

    setting: Setting
    utterances: tuple[Utterance, ...]
    measures: tuple[str, ...] = ("divergence", "cosine")


@dataclass(frozen=True)
class LayersMeasured:
    """Importance of each layer of a model; ``record`` is in the file ``path`` as well."""

    record: ImportanceRecord
    path: str


@dataclass(frozen=True, kw_only=True)
class StudentRequest(CompanionRequest):
    """Train a student with the ``retained`` layers or, if none are named, with the ``depth`` most important ones by
    measurement. What it is after each of ``stages`` (minutes of the budget) is kept, too. The result is
    :class:`paretone.training.requests.Trained`."""

    depth: int | None = None
    """``None``: :func:`paretone.techniques.spade.fitting_depth`."""
    retained: tuple[int, ...] = ()
    stages: tuple[float, ...] = ()
    relative_latents: bool = True
    """Whether errors of layer outputs are relative to the teacher's size; false is the published term."""
