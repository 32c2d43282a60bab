"""Strategy: which cells of the strategy table are skipped."""

from __future__ import annotations

from app.features.feature import Feature
from app.shell.places import Place, Region
from engine.models.base import FLOW

FEATURE = Feature(
    "strategy",
    "app.features.strategy.presenter:StrategyPresenter",
    (Place("strategy", "Strategy", Region.CENTRE, (FLOW,)),),
    technique="ditreducio",
    keys=(
        ("move in the table", "Arrow keys"),
        ("cycle a cell: compute, temporal skip, branch skip", "Space"),
        ("copy as text", "Ctrl+C"),
    ),
)
