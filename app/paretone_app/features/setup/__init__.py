"""Setup: model, voice, text, options and techniques."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import EXPLORE, INSPECT, LISTEN, TRAIN, FeatureAction, Place, Region

FEATURE = Feature(
    "setup",
    "paretone_app.features.setup.presenter:SetupPresenter",
    (Place("setup", "Setup", Region.LEFT, workspaces=(LISTEN, INSPECT, EXPLORE, TRAIN)),),
    actions=(
        FeatureAction("add_technique", "Add techni&que…", "Find a technique by its name, benefit or paper", "Ctrl+T"),
    ),
)
