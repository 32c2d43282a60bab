"""Transfer: how well the strategy table serves other sentences and voices."""

from paretone.models.base import FLOW
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import FeatureAction, MenuPart, Place, Region

FEATURE = Feature(
    "transfer",
    "paretone_app.features.transfer.presenter:TransferPresenter",
    (Place("transfer", "Transfer", Region.CENTRE, (FLOW,)),),
    technique="ditreducio",
    actions=(
        FeatureAction(
            "calibrate_on", "Calibrate on se&veral…", "Calibrate on several sentences and voices", "Ctrl+Shift+B"
        ),
    ),
    menus=(MenuPart("&Run", ("calibrate_on",), after="calibrate"),),
    terms="paretone_app.features.transfer.panel:TERMS",
)
