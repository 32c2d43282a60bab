"""Threshold: what each δ would skip, from the calibration's trials."""

from paretone.models.base import FLOW
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region, TourStop

FEATURE = Feature(
    "threshold",
    "paretone_app.features.threshold.presenter:ThresholdPresenter",
    (Place("threshold", "Threshold", Region.CENTRE, (FLOW,)),),
    technique="ditreducio",
    stops=(
        TourStop(
            "threshold",
            "Choose how much to skip",
            "DiTReducio tries to skip each layer at each step and measures the error. Skips whose error is below the "
            "threshold δ are kept: the farther right you drag the red line, the more is skipped.",
            place="threshold",
            after="hear",
            families=(FLOW,),
        ),
    ),
    keys=(
        ("move δ; further", "Left, Right; with Shift"),
        ("zoom, show all; move the section", "+ and −, 0; Ctrl+arrows"),
    ),
    about="Drag δ in the Threshold panel: the table follows at once. A predicted table says so and offers the "
    "calibration that confirms it.",
)
