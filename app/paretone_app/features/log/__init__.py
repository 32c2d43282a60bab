"""Log: what happened when, and the messages that were shown."""

from __future__ import annotations

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import EXPLORE, INSPECT, LISTEN, TRAIN, FeatureAction, MenuPart, Place, Region

FEATURE = Feature(
    "log",
    "paretone_app.features.log.presenter:LogPresenter",
    (Place("log", "Log", Region.BELOW, workspaces=(LISTEN, INSPECT, EXPLORE, TRAIN)),),
    actions=(FeatureAction("messages", "&Messages…", "All messages that were shown", "Ctrl+Shift+M"),),
    menus=(MenuPart("&Help", ("messages",), after="keys"),),
)
