"""Studies: many settings on many sentences."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import EXPLORE, Place, Region

FEATURE = Feature(
    "studies",
    "app.features.studies.presenter:StudiesPresenter",
    (Place("studies", "Studies", Region.BELOW, workspaces=(EXPLORE,)),),
)
