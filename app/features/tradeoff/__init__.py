"""Trade-off: takes and settings as points, speed against quality."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region

FEATURE = Feature(
    "tradeoff",
    "app.features.tradeoff.presenter:TradeoffPresenter",
    (Place("tradeoff", "Trade-off", Region.CENTRE),),
)
