"""Synthesis: the runs of the main job, and cancelling them."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    "synthesis",
    "app.features.synthesis.presenter:SynthesisPresenter",
)
