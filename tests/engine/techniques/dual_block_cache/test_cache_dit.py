"""The dual block cache against the real cache-dit package: on the official F5 class, and on MegaTTS 3's layers."""

from __future__ import annotations

import pytest

from tests import official
from tests.workload import only_in_full

pytestmark = only_in_full("peers")
PACKAGES = ("cache-dit==1.5.3", "diffusers==0.42.1", "pillow==13.0.0", "importlib_metadata==10.2.0", "zipp==4.1.2")
MODULE = "tests.engine.techniques.dual_block_cache.cache_dit_comparison"


@pytest.fixture(scope="module")
def cases() -> dict:
    return official.run(MODULE, path=official.packages("cache-dit-1.5.3", *PACKAGES))


def test_the_same_steps_are_reused(cases: dict) -> None:
    assert len(cases) == 12
    assert {name: case["ours"] for name, case in cases.items()} == {name: one["theirs"] for name, one in cases.items()}
    decided = [branch for case in cases.values() for branch in case["ours"]]
    assert sum(map(bool, decided)) > len(decided) / 2, "in most cases something is reused"
    differing = [name for name, case in cases.items() if len({tuple(branch) for branch in case["ours"]}) > 1]
    assert len(differing) >= 3, "branches decide on their own"


def test_decisions_are_not_left_to_rounding(cases: dict) -> None:
    assert min(case["margin"] for case in cases.values()) > 1e-3


def test_the_final_states_are_the_same(cases: dict) -> None:
    assert {name: case["difference"] for name, case in cases.items() if not case["difference"] < 1e-5} == {}
    assert min(case["moved"] for case in cases.values()) > 1e-3, "reusing has an effect on all of them"
