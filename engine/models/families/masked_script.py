"""What one synthesis of a masked model speaks, and by which plan: blocks, steps, guidance."""

from __future__ import annotations

from dataclasses import dataclass

from engine.models.families.pacing import AssumedPace, Pace
from engine.models.families.passages import MaskedPassage, MaskedPrompt
from engine.models.kernels.frozen_prefix import FrozenPrefixRun
from engine.models.kernels.fused_masked import FusedMasked, MaskedRequest, MaskedRun
from engine.models.kernels.reused_layers import ReusedLayersRun
from engine.sampling.demasking import Guide, Rules
from engine.sampling.demasking_schedule import block_bounds
from engine.setting.knobs import Values
from engine.techniques.masked_engagement import MaskedEngagement


@dataclass(frozen=True)
class MaskedScript:
    """What one synthesis speaks, and with what."""

    engagement: MaskedEngagement
    network: FusedMasked
    prompt: MaskedPrompt
    passages: tuple[MaskedPassage, ...]
    notes: tuple[str, ...]
    seed: int

    @property
    def options(self) -> Values:
        return self.engagement.options

    @property
    def rules(self) -> Rules:
        return rules_of(self.options)

    def bounds(self, number: int, passage: MaskedPassage) -> tuple[tuple[int, int], ...]:
        """Where the blocks of a passage begin and end."""
        plan = self.engagement.blocks
        if plan is None:
            return ((0, passage.frames),)
        return block_bounds(passage.frames, plan.size, 0 if number else plan.first_size)

    @property
    def paced(self) -> bool:
        """Whether blocks take only as many steps as playback leaves time for."""
        plan = self.engagement.blocks
        return plan is not None and (plan.adaptive or plan.step_seconds > 0)

    def pace(self, measured: Pace) -> Pace:
        """What says how many steps fit, beside what is ``measured``."""
        plan = self.engagement.blocks
        return AssumedPace(plan.step_seconds) if self.paced and not plan.adaptive else measured

    def steps_of(self, number: int, place: int) -> int:
        """How many steps a block takes at most."""
        plan = self.engagement.blocks
        if plan is None:
            return int(self.options["steps"])
        return plan.first_steps if number == place == 0 else plan.later_steps

    def begin(self, request: MaskedRequest) -> MaskedRun:
        """What all steps of a canvas share."""
        engaged = self.engagement
        if engaged.prefix_every > 1:
            return FrozenPrefixRun(self.network, request, self.rules.guidance, engaged.prefix_every)
        if engaged.layers_every > 1:
            every, layers = engaged.layers_every, engaged.reused_layers
            return ReusedLayersRun(self.network, request, self.rules.guidance, every, layers)
        return self.network.begin(request, self.rules.guidance)

    def planned_steps(self, number: int, passage: MaskedPassage) -> list[int]:
        """How many steps each block of a passage takes at most."""
        return [self.steps_of(number, place) for place in range(len(self.bounds(number, passage)))]


def rules_of(options: Values) -> Rules:
    """How codes are chosen and committed under ``options``."""
    return Rules(
        float(options["guidance"]),
        float(options["shift"]),
        float(options["layer_penalty"]),
        float(options["position_temperature"]),
        float(options["class_temperature"]),
    )


def guide_of(engagement: MaskedEngagement, step: int) -> Guide:
    """How a step, counted from 0 within its block, is guided."""
    if engagement.guided_steps is not None and step >= engagement.guided_steps:
        return Guide.ALONE
    if step % engagement.guided_every == 0:
        return Guide.BOTH
    return Guide.REUSED if engagement.reuses_guidance else Guide.ALONE
