"""Guidance: explains why its strength has no effect if guidance is in the weights."""

from __future__ import annotations

from paretone_app.features.feature import Feature

FEATURE = Feature(
    "guidance",
    "paretone_app.features.guidance.presenter:GuidancePresenter",
    technique="guidance_free",
)
