"""Lab: blind listening tests."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region

FEATURE = Feature(
    "lab",
    "app.features.lab.presenter:LabPresenter",
    (Place("lab", "Lab", Region.CENTRE),),
)
