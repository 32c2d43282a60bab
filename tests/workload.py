"""Amount of work of a test: everything with ``--thorough``, otherwise a short form that still shows every fault."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

VARIABLE = "PARETONE_THOROUGH"
"""Set by the option, so that the processes that share the tests know of it."""
Amount = TypeVar("Amount")


def is_thorough() -> bool:
    """Whether tests run in full."""
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


ONLY_IN_FULL = {
    "cluster": "Studies on two Ray nodes",
    "compiled": "Networks compiled for real",
    "damage": "Damaged files of every kind",
    "endurance": "Endurance runs",
    "kills": "Killed processes",
    "packaged": "Packaged program",
    "peers": "Comparisons with other implementations",
    "pictures": "Pictures of every workspace",
    "recipes": "Recipes of the bundled models",
    "repetition": "Repetitions",
    "signals": "Signals to every command",
    "site": "Documentation site",
    "speech": "Long or much speech",
    "without a screen": "End-to-end tests on Qt's offscreen platform",
}
"""What only ``--thorough`` runs in full, and how ``resources/docs/tests.md`` calls it."""


def only_in_full(what: str) -> pytest.MarkDecorator:
    """A mark for tests of :data:`ONLY_IN_FULL`, of which others show in short what a change breaks."""
    return pytest.mark.skipif(not is_thorough(), reason=f"only with --thorough: {ONLY_IN_FULL[what]}")
