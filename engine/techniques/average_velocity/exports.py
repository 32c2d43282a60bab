"""Exports of average velocity: see :mod:`engine.export.targets`. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.export.targets import Target
from engine.setting.profile import Profile
from engine.setting.setting import UsedTechnique

if TYPE_CHECKING:
    from engine.models.f5.checkpoint import F5Checkpoint
    from engine.techniques.average_velocity.exported_weights import AverageVelocityWeights

NAME = "average_velocity"


def why_not(target: str, entry: UsedTechnique, artefact: object) -> str:
    """The official class has no place for the interval's length."""
    return (
        "Average velocity needs an embedding that the official class lacks, so the official package cannot run the "
        "profile; export its weights, and add the embedding as Paretone's guide shows."
    )


def _why_no_weights(profile: Profile, guided_weights: bool) -> str:
    if profile.setting.technique(NAME) is not None:
        return ""
    return "The profile does without Average velocity: there are no such weights to write; use it in the profile."


WEIGHTS = Target(
    "average-velocity",
    "Average-velocity weights",
    "weights for few evaluations: the official layout and one more embedding",
    _why_no_weights,
)
TARGETS = (WEIGHTS,)


def weights(profile: Profile, checkpoint: F5Checkpoint, check: Callable[[], None]) -> AverageVelocityWeights | None:
    """Those that the profile runs with, ``None`` if it does not use the technique."""
    from engine.techniques.average_velocity.exported_weights import AverageVelocityWeights  # Imports torch.

    if profile.setting.technique(NAME) is None:
        return None
    return AverageVelocityWeights.of(profile, checkpoint, check)
