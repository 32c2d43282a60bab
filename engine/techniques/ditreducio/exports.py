"""Exports of DiTReducio: see :mod:`engine.export.targets`. Torch-free."""

from __future__ import annotations

from engine.setting.setting import UsedTechnique
from engine.techniques.ditreducio.table import StrategyTable

REUSE = "reuse"
"""The only kind of temporal skip that the official way knows."""


def why_not(target: str, entry: UsedTechnique, artefact: StrategyTable | None) -> str:
    """Forecasts cannot be carried."""
    if artefact is not None and artefact.temporal != REUSE:
        return (
            "The strategy table was calibrated with forecasts, which the official package cannot run; "
            "calibrate without them."
        )
    return ""


def described(artefact: StrategyTable) -> dict[str, object]:
    """The table."""
    actions = [[action.name for action in row] for row in artefact.actions]
    return {"table": {"branch_skip": artefact.branch_skip, "actions": actions}}


def readme(artefact: StrategyTable) -> str:
    """Skipped share, as a line."""
    return f"{artefact.skipped_share:.0%} of the layers' work units skipped"
