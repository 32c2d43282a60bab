"""Meters: how fast syntheses are."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.entries import FeatureAction, MenuPart
from app.shell.places import INSPECT, LISTEN, TRAIN, Place, Region

FEATURE = Feature(
    "meters",
    "app.features.meters.presenter:MetersPresenter",
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
    terms="app.features.meters.panel:TERMS",
)
