"""Strategy tables in profiles: fields that must agree, and knobs that the table decides. Torch-free."""

from __future__ import annotations

from paretone.errors import ProfileError
from paretone.reading import shown
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques.ditreducio.table import StrategyTable


def check(table: StrategyTable, entry: UsedTechnique, compatibility: Compatibility) -> None:
    """Raise :class:`ProfileError` if the table, the knobs of ``entry`` and what the profile runs on disagree."""
    for name, own in (("branch_skip", table.branch_skip), ("temporal", table.temporal)):
        said = entry.knobs.get(name, own)
        if said != own:
            raise ProfileError(f"table.{name} is {shown(own)}, but setting.techniques says {shown(said)}.")
    mine, theirs = compatibility.fields, table.compatibility.fields
    for name in sorted({*mine, *theirs}):
        if mine.get(name) != theirs.get(name):
            raise ProfileError(
                f"table.belonging.{name} is {shown(theirs.get(name))}, but this profile's is {shown(mine.get(name))}."
            )


def fixed_knobs(table: StrategyTable, knobs: Values) -> Values:
    """``knobs`` as the table was calibrated, not as set for the next calibration."""
    return knobs.replace(branch_skip=table.branch_skip, temporal=table.temporal)
