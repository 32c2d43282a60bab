"""Rounds that fit into a time, and the sentence that says where a run stands."""

import torch

from paretone.bench.budget import Budget
from paretone.measure.timing import Interval
from tests.peers.rounds import (
    AGAIN,
    OFFICIAL,
    OURS,
    Limit,
    arithmetic,
    best_product,
    best_reading,
    length,
    reading,
    rows_of,
    timed,
    verdict,
)


def test_rows_hold_both_ways_and_the_official_one_again() -> None:
    done: list[str] = []
    ways = {OFFICIAL: lambda: done.append(OFFICIAL), OURS: lambda: done.append(OURS)}
    found = timed(ways, {OFFICIAL: 1e-3, OURS: 1e-3}, torch.device("cpu"), Budget(1, most=3), "nothing")
    assert done.count(OFFICIAL) == 6 and done.count(OURS) == 3, "the official way twice a round, and none to warm up"
    rows = rows_of(found, {"model": "m"}, {OURS: {"equal": 1}})
    assert [row["way"] for row in rows] == [OFFICIAL, OURS, AGAIN]
    assert rows[0]["speed-up"] is None and rows[1]["equal"] == 1 and rows[1]["rounds"] == 3
    assert all(row["model"] == "m" for row in rows)


def test_what_is_spoken_at_once_is_shortened_until_two_rounds_fit() -> None:
    assert length(Budget(8, most=9), 0.5, most=60, least=16) == 60, "eight runs of 30 s fit into 480 s"
    assert length(Budget(8, most=9), 2.0, most=60, least=16) == 29
    assert length(Budget(8, most=9), 2.0, most=60, least=16, begin=20.0) == 19
    assert length(Budget(0, most=9), 2.0, most=60, least=16) == 16


def ratio(median: float) -> Interval:
    return Interval(median, median, median)


def test_verdict_names_target_limit_or_neither() -> None:
    at_limit = Limit(0.84, 95.0, 118.0, "GFLOP/s")
    assert at_limit.stands
    assert verdict(ratio(1.2), None) == "1.20× reaches the target of 1.15×."
    assert verdict(ratio(1.06), at_limit) == (
        "1.06× is below the target of 1.15×, but ours stands at this processor's limit. Ours spends 84 % of its time "
        "in products and attention, at 95 GFLOP/s of the 118 GFLOP/s that this processor reached at best."
    )
    assert "not explained by this processor's limit" in verdict(ratio(1.06), None)


def test_limit_needs_both_the_share_and_the_rate() -> None:
    assert not Limit(0.5, 118.0, 118.0, "GFLOP/s").stands
    assert not Limit(0.9, 50.0, 118.0, "GFLOP/s").stands
    half = Limit(0.8, 50.0, 80.0, "GB/s")
    assert half.possible == 2.0
    assert half.row["reached (GB/s)"] == 50.0 and half.row["possible at most"] == 2.0


def test_runs_are_held_to_what_is_measured_here() -> None:
    left, right = torch.randn(300, 300), torch.randn(300, 300)
    limit = arithmetic(lambda: [torch.mm(left, right) for _ in range(20)], 20 * 2.0 * 300**3, [(32, 64, 64)])
    assert limit.unit == "GFLOP/s" and 0 < limit.share <= 1 and limit.reached > 0 and limit.best > 0
    read = reading(lambda: [torch.nn.functional.linear(left[:1], right) for _ in range(20)], 20.0 * right.nbytes, 2**20)
    assert read.unit == "GB/s" and 0 < read.share <= 1 and read.reached > 0


def test_ceilings_are_rates() -> None:
    assert best_product(((32, 64, 64),)) > 0
    assert best_reading(2**20) > 0
