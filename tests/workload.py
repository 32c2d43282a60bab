"""Amount of work of a test: everything with ``--thorough``, otherwise a short form that still shows every fault."""

import itertools
import os
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

VARIABLE = "PARETONE_THOROUGH"
"""Set by the option, so that the processes that share the tests know of it."""
Amount = TypeVar("Amount")


def is_thorough() -> bool:
    return bool(os.environ.get(VARIABLE))


def workload(full: Amount, short: Amount) -> Amount:
    """``full``, or ``short`` where nobody asked to be thorough."""
    return full if is_thorough() else short


def crossed(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Cases of a test that is repeated over several axes: all combinations where tests are thorough, else as many as
    the longest axis has values, so that each value of each axis occurs."""
    if is_thorough():
        return list(itertools.product(*axes))
    return [tuple(axis[place % len(axis)] for axis in axes) for place in range(max(map(len, axes)))]


ONLY_IN_FULL = (
    "cluster",
    "compiled code",
    "endurance",
    "packaged program",
    "peers",
    "recipes",
    "repetitions",
    "site",
    "speech",
)
"""What marks of tests name. ``resources/docs/tests.md`` says what runs in the gate instead."""


def only_in_full(what: str) -> pytest.MarkDecorator:
    """A mark for tests that only ``--thorough`` runs; others show in short what a change breaks."""
    assert what in ONLY_IN_FULL, what
    return pytest.mark.skipif(not is_thorough(), reason=f"only with --thorough: {what}")
