"""Studies: many settings on many sentences."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.entries import FeatureAction, MenuPart
from app.shell.places import EXPLORE, Place, Region

FEATURE = Feature(
    "studies",
    "app.features.studies.presenter:StudiesPresenter",
    (Place("studies", "Studies", Region.BELOW, workspaces=(EXPLORE,)),),
    actions=(
        FeatureAction("open_example", "Open e&xample", "A finished study to look at, hear and use", "Ctrl+Alt+E"),
    ),
    menus=(MenuPart("St&udies", ("open_example",), after="open_study_folder"),),
)
