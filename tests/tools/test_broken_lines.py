"""Broken lines lose and double nothing: a round of every fault, and with the link of a network namespace taken down."""

import pytest

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

from tests.tools.broken_lines import Found, measured, measured_by_link, why_no_namespaces
from tests.workload import only_in_full

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600), only_in_full("repetitions")]


def wrong(found: Found) -> float:
    return sum(count for jobs in found.values() for _, count, _ in jobs.values())


def test_nothing_is_lost_or_doubled_by_any_fault_of_a_relay():
    found = measured(rounds=2)
    assert len(found) == 4 and wrong(found) == 0


def test_nothing_is_lost_or_doubled_while_a_link_is_down():
    if reason := why_no_namespaces():
        pytest.skip(reason)
    assert wrong(measured_by_link(rounds=2)) == 0
