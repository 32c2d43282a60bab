"""Attention: how alike attention is between steps, and the maps themselves."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region
from engine.models.base import FLOW

FEATURE = Feature(
    "attention",
    "app.features.attention.presenter:AttentionPresenter",
    (Place("attention", "Attention", Region.CENTRE, (FLOW,)),),
    technique="ditreducio",
    keys=(
        ("capture the selected cell", "Space"),
        ("pan, zoom, show all", "Arrow keys, + and −, 0"),
    ),
)
