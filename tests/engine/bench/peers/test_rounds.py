"""Rounds that fit into a time, and rows of a comparison."""

from __future__ import annotations

import pytest
import torch

from engine.bench.peers.rounds import AGAIN, OFFICIAL, OURS, Budget, rows_of, timed


@pytest.mark.parametrize(("minutes", "seconds", "expected"), [(10, 1.0, 9), (10, 99.0, 6), (10, 500.0, 2), (0, 1.0, 2)])
def test_as_many_rounds_as_fit_but_two_at_least(minutes: float, seconds: float, expected: int) -> None:
    assert Budget(minutes, most=9).rounds(seconds) == expected


def test_a_share_of_the_time_leaves_the_rest() -> None:
    assert Budget(10, most=9).rounds(99.0, share=0.5) == 3


def test_what_is_spoken_at_once_is_shortened_until_two_rounds_fit() -> None:
    assert Budget(8, most=9).length(0.5, most=60, least=16) == 60, "eight runs of 30 s fit into 480 s"
    assert Budget(8, most=9).length(2.0, most=60, least=16) == 29
    assert Budget(8, most=9).length(2.0, most=60, least=16, begin=20.0) == 19
    assert Budget(0, most=9).length(2.0, most=60, least=16) == 16


def test_rows_hold_both_ways_and_the_official_one_again() -> None:
    done: list[str] = []
    ways = {OFFICIAL: lambda: done.append(OFFICIAL), OURS: lambda: done.append(OURS)}
    found = timed(ways, {OFFICIAL: 1e-3, OURS: 1e-3}, torch.device("cpu"), Budget(1, most=3), "nothing")
    assert done.count(OFFICIAL) == 6 and done.count(OURS) == 3, "the official way twice a round, and none to warm up"
    rows = rows_of(found, {"model": "m"}, {OURS: {"equal": 1}})
    assert [row["way"] for row in rows] == [OFFICIAL, OURS, AGAIN]
    assert rows[0]["speed-up"] is None and rows[1]["equal"] == 1 and rows[1]["rounds"] == 3
    assert all(row["model"] == "m" for row in rows)
