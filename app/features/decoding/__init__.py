"""Decoding: how the speech tokens of A and B came about."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region
from engine.models.base import LANGUAGE

FEATURE = Feature(
    "decoding",
    "app.features.decoding.presenter:DecodingPresenter",
    (Place("decoding", "Decoding", Region.CENTRE, (LANGUAGE,)),),
    technique="speculative",
    training="app.features.decoding.training:TRAINING",
)
