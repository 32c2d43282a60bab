"""Export: profiles and weights for use elsewhere."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    "export",
    "app.features.export.presenter:ExportPresenter",
)
