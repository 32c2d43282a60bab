"""Extras: optional packages, installed in one click where they are missing."""

from __future__ import annotations

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import FeatureAction, MenuPart

FEATURE = Feature(
    "extras",
    "paretone_app.features.extras.presenter:ExtrasPresenter",
    actions=(FeatureAction("extras", "&Optional packages…", "What can be installed in addition, and for what"),),
    menus=(MenuPart("&Help", ("extras",), after="keys"),),
)
