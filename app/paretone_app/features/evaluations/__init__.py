"""Few evaluations: training weights that go the way of many guided steps in one to four."""

from __future__ import annotations

from paretone_app.features.feature import Feature

FEATURE = Feature(
    "evaluations",
    "paretone_app.features.evaluations.presenter:EvaluationsPresenter",
    technique="average_velocity",
    training="paretone_app.features.evaluations.training:TRAINING",
)
