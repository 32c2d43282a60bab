"""Tour: the first minutes, with the real controls."""

from __future__ import annotations

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import FeatureAction, MenuPart, TourStop

FEATURE = Feature(
    "tour",
    "paretone_app.features.tour.presenter:TourPresenter",
    actions=(FeatureAction("tour", "Take a &tour", "Hear, skip, compare and export, step by step", "Ctrl+F1"),),
    menus=(MenuPart("&Help", ("tour",), before="first_steps"),),
    stops=(
        TourStop(
            "onward",
            "Where to go next",
            "Type your own text in Setup, or choose another voice or model. The column on the left leads to everything "
            "else: Inspect shows what happens inside, Explore weighs speed against quality, Test is for blind "
            "listening, Train makes faster weights.",
        ),
    ),
)
