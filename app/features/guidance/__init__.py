"""Guidance: what becomes of it if it is in the weights, and training such weights."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    "guidance",
    "app.features.guidance.presenter:GuidancePresenter",
    technique="guidance_free",
    training="app.features.guidance.training:TRAINING",
)
