"""Exports of average velocity: see :mod:`paretone.export.targets`. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from paretone.export.accounts import Carried, knob_lines, whole_line
from paretone.export.f5_models import weights_target, why_not_weights
from paretone.export.targets import Target
from paretone.setting.profile import Profile
from paretone.setting.setting import UsedTechnique
from paretone.techniques import knobs_of

if TYPE_CHECKING:
    from paretone.models.f5.checkpoint import F5Checkpoint
    from paretone.techniques.average_velocity.exported_weights import AverageVelocityWeights

NAME = "average_velocity"
INTERVALS = "weights with an embedding of the interval's length"
"""What a target takes that runs them."""
NO_TEMPERATURE = "the official sampler starts from noise of scale 1; scale it yourself"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Only a class with a place for the interval's length runs them."""
    if INTERVALS in target.takes:
        temperature = knobs_of(entry)["temperature"]
        without = replace(entry, knobs=entry.knobs.replace(temperature=0.0))
        dropped = () if temperature in (0, 1) else knob_lines(entry, NO_TEMPERATURE, ("temperature",))
        return Carried((whole_line(without, "its weights are written"),), dropped)
    return Carried(
        why_not=f"Average velocity needs an embedding of the interval's length, which {target.program} lacks, so it "
        "cannot run the profile; export its weights, and add the embedding as Paretone's guide shows."
    )


def _why_no_weights(profile: Profile, guided_weights: bool) -> str:
    if reason := why_not_weights(profile, guided_weights):
        return reason
    if profile.setting.technique(NAME) is not None:
        return ""
    return "The profile does without Average velocity: there are no such weights to write; use it in the profile."


def weights(profile: Profile, checkpoint: F5Checkpoint, check: Callable[[], None]) -> AverageVelocityWeights | None:
    """Those that the profile runs with, ``None`` if it does not use the technique."""
    from paretone.techniques.average_velocity.exported_weights import AverageVelocityWeights  # Imports torch.

    if profile.setting.technique(NAME) is None:
        return None
    return AverageVelocityWeights.of(profile, checkpoint, check)


WEIGHTS = weights_target(
    "average-velocity",
    "Average-velocity weights",
    "weights for few evaluations: the official layout and one more embedding",
    INTERVALS,
    _why_no_weights,
    weights,
)
TARGETS = (WEIGHTS,)
