"""Axes: their round numbers, their sections, and ends that no axis can have."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from paretone.figures.scales import Scale

ODD = (0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, 1e-320, 1e308, -1e308, 1 + 1e-15, 1e17, 1e17 + 16)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_whatever_its_ends_an_axis_can_be_drawn(logarithmic: bool) -> None:
    for low, high in itertools.product(ODD, ODD):
        scale = Scale(low, high, logarithmic)
        assert np.isfinite(scale.ends).all()
        for most in (1, 2, 7):
            assert all(map(math.isfinite, scale.ticks(most)))
        assert math.isfinite(scale.at(0.5))


def test_a_figure_and_its_share_go_together() -> None:
    for scale in (Scale(2.0, 6.0), Scale(6.0, 2.0), Scale(0.1, 100.0, True)):
        for share in (0.0, 0.25, 1.0):
            assert float(scale.share(np.array(scale.at(share)))) == pytest.approx(share)


def test_an_axis_that_is_upside_down_has_the_same_numbers_and_sections() -> None:
    whole, down = Scale(0.0, 10.0), Scale(10.0, 0.0)
    assert down.ticks(5) == whole.ticks(5)
    assert down.zoomed(0.5, 0.25, down) == whole.zoomed(0.5, 0.75, whole).flipped
    section = down.zoomed(0.5, 0.5, down)
    assert section == Scale(7.5, 2.5)
    assert section.moved(0.2, down) == Scale(6.5, 1.5), "further on is towards its end"
    assert section.moved(9.0, down) == Scale(5.0, 0.0) and section.zoomed(9.0, 0.5, down) == down
