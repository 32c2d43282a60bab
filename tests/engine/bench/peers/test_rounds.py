"""Rows of a comparison."""

from __future__ import annotations

import torch

from paretone.bench.budget import Budget
from paretone.bench.peers.rounds import AGAIN, OFFICIAL, OURS, rows_of, timed


def test_rows_hold_both_ways_and_the_official_one_again() -> None:
    done: list[str] = []
    ways = {OFFICIAL: lambda: done.append(OFFICIAL), OURS: lambda: done.append(OURS)}
    found = timed(ways, {OFFICIAL: 1e-3, OURS: 1e-3}, torch.device("cpu"), Budget(1, most=3), "nothing")
    assert done.count(OFFICIAL) == 6 and done.count(OURS) == 3, "the official way twice a round, and none to warm up"
    rows = rows_of(found, {"model": "m"}, {OURS: {"equal": 1}})
    assert [row["way"] for row in rows] == [OFFICIAL, OURS, AGAIN]
    assert rows[0]["speed-up"] is None and rows[1]["equal"] == 1 and rows[1]["rounds"] == 3
    assert all(row["model"] == "m" for row in rows)
