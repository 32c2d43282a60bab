"""Layers: what each layer is worth, and which ones stay."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region
from engine.models.base import LANGUAGE

FEATURE = Feature(
    "layers",
    "app.features.layers.presenter:LayersPresenter",
    (Place("layers", "Layers", Region.CENTRE, (LANGUAGE,)),),
    technique="spade",
    training="app.features.layers.training:TRAINING",
)
