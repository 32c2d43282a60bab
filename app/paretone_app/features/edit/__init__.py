"""Edit: undo and redo everywhere, copying figures, finding, preferences."""

from __future__ import annotations

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import FeatureAction, MenuPart

FEATURE = Feature(
    "edit",
    "paretone_app.features.edit.presenter:EditPresenter",
    actions=(
        FeatureAction(
            "copy_figures",
            "&Copy figures",
            "Copy the figures of the plot or table with the focus, for a spreadsheet",
            "Ctrl+Shift+C",
        ),
        FeatureAction(
            "find",
            "&Find…",
            "Search the panel with the focus; in any other panel, and again, actions, takes and terms",
            "Ctrl+F",
        ),
        FeatureAction("preferences", "&Preferences…", "Theme, device, data folder and layout", "Ctrl+,"),
    ),
    menus=(MenuPart("&Edit", (None, "copy_figures", None, "find", None, "preferences")),),
)
