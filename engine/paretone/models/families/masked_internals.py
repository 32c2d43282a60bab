"""A passage of a masked model, taken apart for profiling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paretone.models.families.grid_decoder import GridDecoder
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.sampling.demasking import CanvasRun, Rules
from paretone.sampling.demasking_schedule import Block
from paretone.setting.plan import MaskedPlan


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
