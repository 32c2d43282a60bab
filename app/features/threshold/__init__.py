"""Threshold: what each δ would skip, from the calibration's trials."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region
from engine.models.base import FLOW

FEATURE = Feature(
    "threshold",
    "app.features.threshold.presenter:ThresholdPresenter",
    (Place("threshold", "Threshold", Region.CENTRE, (FLOW,)),),
    technique="ditreducio",
)
