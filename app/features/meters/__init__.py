"""Meters: how fast syntheses are."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import INSPECT, LISTEN, TRAIN, Place, Region

FEATURE = Feature(
    "meters",
    "app.features.meters.presenter:MetersPresenter",
    (Place("meters", "Meters", Region.RIGHT, workspaces=(LISTEN, INSPECT, TRAIN)),),
    terms="app.features.meters.panel:TERMS",
)
