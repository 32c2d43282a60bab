"""Profiles: opening one, from the menu or the command line; dropped files come from
:mod:`paretone_app.features.dropping`."""

from __future__ import annotations

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import FeatureAction, MenuPart

FEATURE = Feature(
    "profiles",
    "paretone_app.features.profiles.presenter:ProfilesPresenter",
    actions=(
        FeatureAction("open_profile", "&Open profile…", "Use the setting of an exported profile", "Ctrl+Shift+P"),
    ),
    menus=(MenuPart("&File", ("open_profile",), before="export_profile"),),
)
