"""Synthesis: the runs of the main job, and cancelling them."""

from __future__ import annotations

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import MainStep, TourStop

FEATURE = Feature(
    "synthesis",
    "paretone_app.features.synthesis.presenter:SynthesisPresenter",
    steps=(
        MainStep(
            "baseline",
            "Baseline",
            "press <b>Baseline</b> (Ctrl+B) to hear the model without any technique.",
            "<b>Baseline</b>: speak a sentence with every module computed.",
        ),
        MainStep(
            "accelerated",
            "Accelerated",
            "press <b>Accelerated</b> (Ctrl+Return) to speak the same sentence with the techniques in use.",
            "<b>Accelerated</b>: speak the same sentence, from the same noise, with the techniques in use.",
        ),
    ),
    stops=(
        TourStop(
            "hear",
            "Hear the model",
            "This is the model without any acceleration: take A. It plays while it is computed.",
            place="listen",
        ),
    ),
)
