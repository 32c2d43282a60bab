"""Training: weights, drafts and students of the loaded model."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import TRAIN, Place, Region

FEATURE = Feature(
    "training",
    "app.features.training.presenter:TrainingPresenter",
    (Place("training", "Training", Region.CENTRE, workspaces=(TRAIN,)),),
)
