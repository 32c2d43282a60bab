"""How often a test repeats what must hold every time: in full with ``--thorough``, in a short form otherwise."""

from __future__ import annotations

import os

VARIABLE = "PARETONE_THOROUGH"
"""Set by the option, so that the processes that share the tests know of it."""


def is_thorough() -> bool:
    """Whether tests repeat in full."""
    return bool(os.environ.get(VARIABLE))


def repetitions(full: int, short: int) -> int:
    """``full``, or ``short`` where nobody asked to be thorough."""
    return full if is_thorough() else short
