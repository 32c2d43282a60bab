"""Trained weights that techniques engage with: which of a loaded model's fit the knobs. Torch-free."""

from __future__ import annotations

from engine.knobs import Values
from engine.models.base import DraftWeights, ModelInfo, StudentWeights, WeightSet
from engine.techniques import guidance_free, language_engagement, spade, speculative

Trained = WeightSet | DraftWeights | StudentWeights


def fitting(info: ModelInfo, technique: str, knobs: Values) -> tuple[Trained, ...]:
    """Those of the loaded model that ``technique`` can engage with under ``knobs``: of them a setting that names none
    takes the first. Techniques without weights of their own have none."""
    if technique == guidance_free.NAME:
        return guidance_free.fitting(info, float(knobs["weight"]))
    if technique == spade.NAME:
        return language_engagement.fitting_students(info, knobs)
    if technique == speculative.NAME:
        return language_engagement.fitting_drafts(info, knobs)
    return ()
