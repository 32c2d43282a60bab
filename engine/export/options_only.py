"""Export of techniques that only set sampler options: any target can carry these."""

from __future__ import annotations

from engine.setting.setting import Engaged


def why_not(target: str, entry: Engaged, artefact: object) -> str:
    """Exporting is always possible."""
    return ""
