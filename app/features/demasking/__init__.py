"""Demasking: how the canvases of A and B filled in."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region
from engine.models.base import MASKED

FEATURE = Feature(
    "demasking",
    "app.features.demasking.presenter:DemaskingPresenter",
    (Place("demasking", "Demasking", Region.CENTRE, (MASKED,)),),
)
