"""What exports ask of techniques that do no more than set the sampler's options: any target carries these."""

from __future__ import annotations

from engine.setting.setting import Engaged


def why_not(target: str, entry: Engaged, artefact: object) -> str:
    """Nothing stands in the way."""
    return ""
