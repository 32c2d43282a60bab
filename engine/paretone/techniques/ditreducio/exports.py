"""Exports of DiTReducio: see :mod:`paretone.export.targets`. Torch-free."""

from __future__ import annotations

from paretone.export.accounts import TABLE, Carried, Line, whole_line
from paretone.export.targets import Target, lacking
from paretone.setting.setting import UsedTechnique
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.wording import percent

REUSE = "reuse"
"""The only kind of temporal skip that the official way knows."""


def carried(target: Target, entry: UsedTechnique, artefact: StrategyTable | None) -> Carried:
    """The strategy table, unless it forecasts."""
    if TABLE not in target.takes or artefact is None:
        return lacking(target, entry)
    if artefact.temporal != REUSE:
        reason = (
            f"the strategy table was calibrated with forecasts, which {target.program} cannot run; calibrate without "
            "them"
        )
        return Carried(drops=(whole_line(entry, reason),))
    said = f"{percent(artefact.skipped_share)} of the layers' work units skipped"
    actions = [[action.name for action in row] for row in artefact.actions]
    return Carried(
        (Line("Strategy table", said, "carried out block by block, step by step"),),
        given={"table": {"branch_skip": artefact.branch_skip, "actions": actions}},
    )
