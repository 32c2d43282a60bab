"""Layers: importance of each layer, and the choice of kept ones."""

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
    study="app.features.layers.study:KIND",
    keys=(
        ("select a layer; keep or remove it", "Left, Right; Space"),
        ("keep one layer more, one less", "Up, Down"),
        ("copy as text", "Ctrl+C"),
    ),
    about="SPADE removes layers of speech language models: Layers shows the importance of each.",
)
