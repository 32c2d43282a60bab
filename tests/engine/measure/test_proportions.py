"""Intervals of proportions against a published table."""

from __future__ import annotations

import pytest

from paretone.measure.estimates import wilson_interval


def test_wilson() -> None:
    # Newcombe (1998), table I, method 3.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson_interval(0, 0) == (0.0, 1.0)
