"""A masked model's text about to be spoken: blocks, steps, guidance, progress."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from paretone.models.base import Script
from paretone.models.families import parts
from paretone.models.families.pacing import AssumedPace, Pace
from paretone.models.families.passages import FramedPassage
from paretone.models.families.token_decoder import GridDecoder
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.observer import Observer, StepReport
from paretone.sampling.demasking import CanvasRun, Guide, Rules, Schedule, SeededCanvasNoise
from paretone.sampling.demasking_schedule import Block, block_bounds
from paretone.setting.knobs import Values
from paretone.setting.plan import GuidanceSchedule, MaskedPlan


@dataclass(frozen=True)
class MaskedScript(Script):
    """Everything one synthesis needs."""

    plan: MaskedPlan
    network: FusedMasked
    passages: tuple[FramedPassage, ...]

    @cached_property
    def noise(self) -> SeededCanvasNoise:
        """The random numbers of all passages."""
        return SeededCanvasNoise(self.seed, self.network.device)

    @property
    def rules(self) -> Rules:
        return rules_of(self.options)

    def bounds(self, number: int, passage: FramedPassage) -> tuple[tuple[int, int], ...]:
        """First and last frames of the blocks of a passage."""
        blocks = self.plan.blocks
        if blocks is None:
            return ((0, passage.frames),)
        return block_bounds(passage.frames, blocks.size, 0 if number else blocks.first_size)

    @property
    def paced(self) -> bool:
        """Whether blocks take only as many steps as playback leaves time for."""
        blocks = self.plan.blocks
        return blocks is not None and (blocks.adaptive or blocks.step_seconds > 0)

    def pace(self, measured: Pace) -> Pace:
        """Pace that limits steps, in addition to the ``measured`` one."""
        blocks = self.plan.blocks
        assumed = blocks is not None and self.paced and not blocks.adaptive
        return AssumedPace(blocks.step_seconds) if blocks is not None and assumed else measured

    def steps_of(self, number: int, place: int) -> int:
        """Maximum number of steps of a block."""
        blocks = self.plan.blocks
        if blocks is None:
            return int(self.options["steps"])
        return blocks.first_steps if number == place == 0 else blocks.later_steps

    def schedule(self, cells: int, steps: int) -> Schedule | None:
        """Decides how many of a block's ``cells`` each of at most ``steps`` steps commits; ``None``: the options."""
        part = self.plan.schedule
        return None if part is None else parts.schedule(part, cells, steps)

    def begin(self, request: MaskedRequest) -> CanvasRun:
        """State shared by all steps of a canvas."""
        if self.plan.run is not None:
            return parts.masked_run(self.plan.run, self.network, request, self.rules.guidance)
        return self.network.begin(request, self.rules.guidance)

    def planned_steps(self, number: int, passage: FramedPassage) -> list[int]:
        """Maximum number of steps of each block of a passage."""
        return [self.steps_of(number, place) for place in range(len(self.bounds(number, passage)))]


def rules_of(options: Values) -> Rules:
    """Rules for choosing and committing codes under ``options``."""
    return Rules(
        float(options["guidance"]),
        float(options["shift"]),
        float(options["layer_penalty"]),
        float(options["position_temperature"]),
        float(options["class_temperature"]),
    )


def guide_of(schedule: GuidanceSchedule, step: int) -> Guide:
    """Guidance of a step, counted from 0 within its block."""
    if schedule.steps is not None and step >= schedule.steps:
        return Guide.ALONE
    if step % schedule.every == 0:
        return Guide.BOTH
    return Guide.REUSED if schedule.reuse else Guide.ALONE


class DemaskingProgress:
    """Tells an observer how far the steps of one passage are."""

    def __init__(self, observer: Observer, planned: Sequence[Sequence[int]], number: int, seconds: float) -> None:
        """``planned`` are the steps that each block of each passage takes at most, ``number`` is the passage that runs,
        and ``seconds`` how long it will be heard."""
        self._observer, self._number, self._passages = observer, number, len(planned)
        self._before, self._total = sum(map(sum, planned[:number])), sum(map(sum, planned))
        self._steps, self._blocks = sum(planned[number]), iter(planned[number])
        self._seconds = seconds
        self._start: int | None = None
        """First frame of the running block."""
        self._done = self._planned = 0
        """Steps of the blocks before the running one, and of this, as they were planned."""

    def tell(self, block: Block, step: int, seconds: float) -> None:
        """A step of ``block`` is done, counted from 0 within it; how many it has may have changed on the way."""
        if block.start != self._start:
            self._done, self._planned, self._start = self._done + self._planned, next(self._blocks, 1), block.start
        # A block may take fewer steps than was planned.
        reached = min(self._done + math.ceil((step + 1) / block.steps * self._planned), self._steps)
        self._observer.step(
            StepReport(
                self._number,
                self._passages,
                reached - 1,
                self._steps,
                seconds,
                self._seconds,
                self._before,
                self._total,
            )
        )


@dataclass(frozen=True)
class MaskedInternals:
    """The first passage of a synthesis, and what is done with it, for profiling."""

    network: FusedMasked
    plan: MaskedPlan
    request: MaskedRequest
    begin: Callable[[MaskedRequest], CanvasRun]
    """Begins what all steps of a canvas share, as the plan has it."""
    rules: Rules
    blocks: tuple[Block, ...]
    """In the order in which they are filled in, with the most steps that each may take."""
    decoder: Callable[[], GridDecoder]
    """Gives what makes its codes heard, again."""
    passages: int
    """Total number of passages."""
    audio_seconds: float
    """Seconds of audio of the first passage, with silence at its ends."""
