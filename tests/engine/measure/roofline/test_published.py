"""The roofline post's table, as facts/omnivoice.md §7 works it out, is reproduced to the digits that stand there."""

from __future__ import annotations

import pytest

from paretone.measure.roofline import published
from paretone.measure.roofline.report import ATTENTION, EMBEDDING, FEED_FORWARD, HEAD, NORMS, PROJECTIONS, SAMPLING

TABLE = {
    # component: operations, megabytes, microseconds, calls, milliseconds in all, as the table prints them
    HEAD: ("1.01e+10", "27.9", "10.1", 32, "0.32"),
    FEED_FORWARD: ("1.13e+10", "32.4", "11.3", 896, "10.1"),
    PROJECTIONS: ("7.55e+09", "22.4", "7.5", 896, "6.8"),
    ATTENTION: ("1.47e+09", "7.4", "2.5", 896, "2.2"),
    EMBEDDING: ("4.9e+06", "11.1", "3.7", 32, "0.12"),
    SAMPLING: ("3.7e+07", "59", "20", 32, "0.63"),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_row_of_the_table(name):
    operations, megabytes, microseconds, calls, milliseconds = TABLE[name]
    report = published.report()
    one = next(component for _, component in report.components() if component.name == name)

    def shown(value: float, like: str) -> str:
        return f"{value:.{len(like.partition('.')[2])}f}"

    digits = len(operations.partition(".")[2].partition("e")[0])
    assert f"{one.work.operations:.{digits}e}" == operations
    assert shown(one.work.bytes / 1e6, megabytes) == megabytes
    assert shown(report.ceilings.floor(one.work, one.precision) * 1e6, microseconds) == microseconds
    assert one.calls == calls
    assert shown(one.floor(report.ceilings) * 1e3, milliseconds) == milliseconds


def test_the_posts_own_arithmetic_of_the_head():
    work = published.works()[HEAD]
    assert work.operations == 600 * 1024 * 8200 * 2 == 10_076_160_000
    assert work.bytes == 2 * (600 * 1024 + 1024 * 8200 + 600 * 8200)
    compute, memory = published.CEILINGS.seconds(work, published.PRECISION)
    assert round(compute * 1e6) == 10 and round(memory * 1e6) == 9


def test_the_sum_is_about_twenty_milliseconds():
    report = published.report()
    rows = [one for _, one in report.components() if one.name != NORMS]
    assert round(sum(one.floor(report.ceilings) for one in rows) * 1e3) == 20


def test_launches_bound_what_the_post_measured():
    """28 × 61 + 20 launches per forward, 55,300 per utterance; at 11 µs each they take most of the 696 ms measured."""
    report = published.report()
    assert report.phases[0].launches == 1728
    assert round(report.launches, -2) == 55_300
    launching = report.ceilings.launching(report.launches)
    measured = sum(published.MEASURED["bfloat16"].values())
    assert measured == pytest.approx(0.696, abs=0.001)
    assert 0.8 < launching / measured < 1
    assert measured / report.floor > 25
