"""Meters: speed of syntheses."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import INSPECT, LISTEN, TRAIN, FeatureAction, MenuPart, Place, Region

FEATURE = Feature(
    "meters",
    "paretone_app.features.meters.presenter:MetersPresenter",
    (Place("meters", "Meters", Region.RIGHT, workspaces=(LISTEN, INSPECT, TRAIN), uncovered=True),),
    actions=(
        FeatureAction(
            "repeat",
            "&Repeat ×5",
            "Time A and B again, five times each: their figures are then medians with 95 % intervals",
            "Ctrl+Shift+R",
        ),
    ),
    menus=(MenuPart("&Run", ("repeat",), after="accelerated"),),
    terms="paretone_app.features.meters.panel:TERMS",
)
