"""Studies: many settings on many sentences."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region

FEATURE = Feature(
    "studies",
    "app.features.studies.presenter:StudiesPresenter",
    (Place("studies", "Studies", Region.CENTRE),),
)
