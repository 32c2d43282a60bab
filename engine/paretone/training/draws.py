"""The state of a random generator as checkpoints keep it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any


def draw_state(draw: random.Random) -> list[Any]:
    """State of ``draw``, as lists and numbers alone."""
    version, internal, gauss = draw.getstate()
    return [version, list(internal), gauss]


def restore_draw(draw: random.Random, state: Sequence[Any]) -> None:
    """Continue from :func:`draw_state`."""
    version, internal, gauss = state
    draw.setstate((version, tuple(internal), gauss))
