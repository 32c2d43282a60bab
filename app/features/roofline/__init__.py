"""Roofline: what each component takes against what the machine could do."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region

FEATURE = Feature(
    "roofline",
    "app.features.roofline.presenter:RooflinePresenter",
    (Place("roofline", "Roofline", Region.CENTRE),),
)
