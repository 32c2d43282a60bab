"""Export: profiles and weights for use elsewhere."""

from __future__ import annotations

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import MainStep, TourStop

FEATURE = Feature(
    "export",
    "paretone_app.features.export.presenter:ExportPresenter",
    steps=(
        MainStep(
            "export_profile",
            "Export profile",
            "press <b>Export profile</b> (Ctrl+E): <i>paretone speak --profile</i> runs it anywhere.",
            "<b>Export</b>: the profile contains setting, tables and measurements, and runs from the command line.",
        ),
    ),
    stops=(
        TourStop(
            "export",
            "Take the setting with you",
            "A profile holds the setting, its table and what was measured. It runs from the command line and on other "
            "machines.",
            place="listen",
        ),
    ),
)
