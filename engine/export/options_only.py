"""Export of techniques that only set sampler options: any target can carry these."""

from __future__ import annotations

from engine.setting.setting import UsedTechnique


def why_not(target: str, entry: UsedTechnique, artefact: object) -> str:
    """Exporting is always possible."""
    return ""
