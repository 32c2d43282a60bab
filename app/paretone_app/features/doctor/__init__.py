"""Doctor: what this installation is, what does not work in it, and what to do."""

from __future__ import annotations

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import FeatureAction, MenuPart

FEATURE = Feature(
    "doctor",
    "paretone_app.features.doctor.presenter:DoctorPresenter",
    actions=(
        FeatureAction(
            "doctor", "Check &installation…", "Versions, device, sound, fonts, folders, space, plug-ins and packages"
        ),
    ),
    menus=(MenuPart("&Help", ("doctor",), after="extras"),),
)
