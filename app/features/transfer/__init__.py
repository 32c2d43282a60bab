"""Transfer: how well the strategy table serves other sentences and voices."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.entries import FeatureAction, MenuPart
from app.shell.places import Place, Region
from engine.models.base import FLOW

FEATURE = Feature(
    "transfer",
    "app.features.transfer.presenter:TransferPresenter",
    (Place("transfer", "Transfer", Region.CENTRE, (FLOW,)),),
    technique="ditreducio",
    actions=(
        FeatureAction(
            "calibrate_on", "Calibrate on se&veral…", "Calibrate on several sentences and voices", "Ctrl+Shift+B"
        ),
    ),
    menus=(MenuPart("&Run", ("calibrate_on",), after="calibrate"),),
    terms="app.features.transfer.panel:TERMS",
)
