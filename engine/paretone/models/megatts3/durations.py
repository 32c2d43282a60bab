"""From codes of the duration model to the durations that are spoken: the official rules, in their order.

``dur_pred`` of ``tts/frontend_function.py``. Its random disturbance is off by default here, and drawn alike for equal
requests, so that takes of a text are equally long; upstream has it at 0.1 and draws again every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from paretone.models.megatts3.phone_table import phone_number

FRAMES_MULTIPLE = 8
"""Durations of a segment add up to a multiple of this."""
SEAM = 32
"""Frames that the last phone of a segment has more, for the fade into the next."""
LAST = (64, 128)
"""Bounds of the last phone of all."""
LONGEST = 127
FIRST = 8
"""Frames of the silence that the first segment begins with."""
LONG_PAUSE, SHORT_PAUSE = 64, 32
PAUSES = {
    **{phone_number(name): LONG_PAUSE for name in ("。", "！", "？", "sil")},
    **{phone_number(name): SHORT_PAUSE for name in ("，", "；")},
}
"""The least frames of phones that are pauses."""


@dataclass(frozen=True)
class Tempo:
    """Changes of durations before the rules for pauses."""

    stretch: float = 1.0
    """Durations are multiplied by this, the official ``dur_alpha``; 1 / speed."""
    disturbance: float = 0.0
    """Each duration is multiplied, or divided, by up to 1 + this; the official ``dur_disturb``."""


def settled_durations(
    codes: Sequence[int],
    phones: Sequence[int],
    code_size: int,
    is_first: bool,
    is_last: bool,
    tempo: Tempo | None = None,
    generator: torch.Generator | None = None,
) -> list[int]:
    """Frames of 10 ms for each of a segment's ``phones``, out of the ``codes`` that the model gave them.

    ``is_first`` and ``is_last`` give the segment's place in the text. ``generator`` draws the disturbance: for all
    phones whether to multiply or to divide, then for all phones by how much.
    """
    tempo = tempo or Tempo()
    frames = (torch.tensor(codes) - 1).clamp(0, code_size - 1).float()
    frames[-1] = frames[-1].clamp(*LAST) if is_last else frames[-1] + SEAM
    if tempo.disturbance:
        multiplied = torch.rand(len(frames), generator=generator) > 0.5
        factors = 1 + torch.rand(len(frames), generator=generator) * tempo.disturbance
        frames = torch.where(multiplied, frames * factors, frames / factors)
    frames = (frames * tempo.stretch).round().clamp(0, LONGEST)
    settled = [max(int(count), PAUSES.get(phone, 0)) for count, phone in zip(frames.tolist(), phones, strict=True)]
    if is_first:
        settled[0] = FIRST
    settled[-1] += -sum(settled) % FRAMES_MULTIPLE
    return settled
