"""Exports of the searched grid: see :mod:`paretone.export.targets`. Torch-free."""

from __future__ import annotations

from paretone.export.accounts import TIMES, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.setting.setting import UsedTechnique
from paretone.techniques.searched_grid.grid import PlacedGrid


def carried(target: Target, entry: UsedTechnique, artefact: PlacedGrid | None) -> Carried:
    """The placed times, where a target takes any."""
    if TIMES not in target.takes or artefact is None:
        return lacking(target, entry)
    return Carried((whole_line(entry, "as the times of the steps"),), given={"times": list(artefact.times)})
