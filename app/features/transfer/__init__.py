"""Transfer: how well the strategy table serves other sentences and voices."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region
from engine.models.base import FLOW

FEATURE = Feature(
    "transfer",
    "app.features.transfer.presenter:TransferPresenter",
    (Place("transfer", "Transfer", Region.CENTRE, (FLOW,)),),
    technique="ditreducio",
)
