"""Exports of SPADE: see :mod:`paretone.export.targets`. Torch-free."""

from __future__ import annotations

from paretone.export.accounts import FEWER_LAYERS, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.setting.setting import UsedTechnique

KIND = "student"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """The student goes in place of the model, where the target runs language models."""
    if FEWER_LAYERS not in target.takes:
        return lacking(target, entry)
    return Carried((whole_line(entry, "the model that is written has these layers"),))
