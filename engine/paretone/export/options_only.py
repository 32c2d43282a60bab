"""Export of techniques that only set sampler options: they are carried where the options are. Torch-free."""

from __future__ import annotations

from paretone.export.accounts import OPTIONS, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.setting.setting import UsedTechnique


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """One line; what becomes of each option is said with the options."""
    if OPTIONS not in target.takes:
        return lacking(target, entry)
    return Carried((whole_line(entry, "as sampler options, as far as those are honoured"),))
