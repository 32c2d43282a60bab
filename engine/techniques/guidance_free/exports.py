"""Exports of CFG-free: see :mod:`engine.export.targets`. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.export.targets import Target
from engine.setting.profile import Profile
from engine.setting.setting import UsedTechnique
from engine.techniques import technique

NAME = "guidance_free"

if TYPE_CHECKING:
    from engine.models.f5.checkpoint import F5Checkpoint
    from engine.techniques.guidance_free.exported_weights import GuidanceFreeWeights


def why_not(target: str, entry: UsedTechnique, artefact: object) -> str:
    """The weights go with the profile."""
    return ""


def _why_no_weights(profile: Profile, guided_weights: bool) -> str:
    if guided_weights or profile.setting.technique(NAME) is not None:
        return ""
    return (
        "The profile runs the plain checkpoint with guidance: there are no CFG-free weights to write; use "
        "CFG-free in the profile."
    )


SAFETENSORS = Target("safetensors", "CFG-free weights", "CFG-free weights in the official layout", _why_no_weights)
TARGETS = (SAFETENSORS,)


def weights(profile: Profile, checkpoint: F5Checkpoint, check: Callable[[], None]) -> GuidanceFreeWeights | None:
    """Those that the profile runs with, the checkpoint's own if these are CFG-free."""
    from engine.techniques.guidance_free.exported_weights import GuidanceFreeWeights  # Imports torch.

    others = [one for one in profile.setting.techniques if one.technique != NAME and technique(one.technique).weights]
    if others:  # Their own technique exports them.
        return None
    return GuidanceFreeWeights.of(profile, checkpoint, check)
