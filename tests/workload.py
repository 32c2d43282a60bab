"""Amount of work of a test: everything with ``--thorough``, otherwise a short form that still shows every fault."""

from __future__ import annotations

import os
from typing import TypeVar

VARIABLE = "PARETONE_THOROUGH"
"""Set by the option, so that the processes that share the tests know of it."""
Amount = TypeVar("Amount")


def is_thorough() -> bool:
    """Whether tests run in full."""
    return bool(os.environ.get(VARIABLE))


def workload(full: Amount, short: Amount) -> Amount:
    """``full``, or ``short`` where nobody asked to be thorough."""
    return full if is_thorough() else short
