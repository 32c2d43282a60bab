"""Guide: the main job as a row of steps."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    "guide",
    "app.features.guide.presenter:GuidePresenter",
)
