"""Demasking: how the canvases of A and B filled in."""

from paretone.models.base import MASKED
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region

FEATURE = Feature(
    "demasking",
    "paretone_app.features.demasking.presenter:DemaskingPresenter",
    (Place("demasking", "Demasking", Region.CENTRE, (MASKED,)),),
    keys=(
        ("from cell to cell; a step back, a step on", "Arrow keys; Page Up, Page Down"),
        ("play from the frame", "Space"),
        ("copy as text", "Ctrl+C"),
    ),
    about="Masked models fill in a canvas of codes: Demasking shows in which order, and plays the canvas after "
    "any step.",
)
