"""Training: weights, drafts and students of the loaded model."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import TRAIN, Place, Region

FEATURE = Feature(
    "training",
    "paretone_app.features.training.presenter:TrainingPresenter",
    (Place("training", "Training", Region.CENTRE, workspaces=(TRAIN,)),),
)
