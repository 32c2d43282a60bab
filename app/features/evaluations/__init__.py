"""Few evaluations: training weights that go the way of many guided steps in one to four."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    "evaluations",
    "app.features.evaluations.presenter:EvaluationsPresenter",
    technique="average_velocity",
    training="app.features.evaluations.training:TRAINING",
)
