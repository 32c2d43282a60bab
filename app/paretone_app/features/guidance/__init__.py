"""Guidance: what becomes of it if it is in the weights, and training such weights."""

from __future__ import annotations

from paretone_app.features.feature import Feature

FEATURE = Feature(
    "guidance",
    "paretone_app.features.guidance.presenter:GuidancePresenter",
    technique="guidance_free",
)
