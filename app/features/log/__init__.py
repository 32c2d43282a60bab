"""Log: what happened when."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import EXPLORE, INSPECT, LISTEN, TRAIN, Place, Region

FEATURE = Feature(
    "log",
    "app.features.log.presenter:LogPresenter",
    (Place("log", "Log", Region.BELOW, workspaces=(LISTEN, INSPECT, EXPLORE, TRAIN)),),
)
