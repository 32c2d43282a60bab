"""Exports of CFG-free: see :mod:`paretone.export.targets`. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from paretone.export.accounts import F5_WEIGHTS, Carried, whole_line
from paretone.export.f5_models import weights_target, why_not_weights
from paretone.export.targets import Target, lacking
from paretone.setting.profile import Profile
from paretone.setting.setting import UsedTechnique
from paretone.techniques import technique

NAME = "guidance_free"

if TYPE_CHECKING:
    from paretone.models.f5.checkpoint import F5Checkpoint
    from paretone.techniques.guidance_free.exported_weights import GuidanceFreeWeights


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """The weights go with the profile, where the target runs weights of F5-TTS."""
    if F5_WEIGHTS not in target.takes:
        return lacking(target, entry)
    return Carried((whole_line(entry, "its weights are written, and run without guidance"),))


def _why_no_weights(profile: Profile, guided_weights: bool) -> str:
    if reason := why_not_weights(profile, guided_weights):
        return reason
    if guided_weights or profile.setting.technique(NAME) is not None:
        return ""
    return (
        "The profile runs the plain checkpoint with guidance: there are no CFG-free weights to write; use "
        "CFG-free in the profile."
    )


def weights(profile: Profile, checkpoint: F5Checkpoint, check: Callable[[], None]) -> GuidanceFreeWeights | None:
    """Those that the profile runs with, the checkpoint's own if these are CFG-free."""
    from paretone.techniques.guidance_free.exported_weights import GuidanceFreeWeights  # Imports torch.

    others = [one for one in profile.setting.techniques if one.technique != NAME and technique(one.technique).weights]
    if others:  # Their own technique exports them.
        return None
    return GuidanceFreeWeights.of(profile, checkpoint, check)


SAFETENSORS = weights_target(
    "safetensors",
    "CFG-free weights",
    "CFG-free weights in the official layout",
    F5_WEIGHTS,
    _why_no_weights,
    weights,
)
TARGETS = (SAFETENSORS,)
