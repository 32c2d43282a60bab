from __future__ import annotations

import numpy as np

from paretone_app.features.listen.plots import Picture, difference


def picture(value: float, level: float, samples: int = 1000, frames: int = 5) -> Picture:
    return Picture(np.full(samples, value, np.float32), 24000, np.full((frames, 100), level, np.float32))


def test_the_difference_covers_the_time_that_both_have() -> None:
    result = difference(picture(0.5, 1.0), picture(0.2, 0.25, 900, 4), floor=-8.0)
    np.testing.assert_allclose(result.samples, np.full(900, 0.3), atol=1e-6)
    np.testing.assert_allclose(result.mel, np.full((4, 100), 0.75))


def test_two_silences_do_not_differ() -> None:
    assert not difference(picture(0, -11.0), picture(0, -9.0), floor=-8.0).mel.any()
    np.testing.assert_allclose(difference(picture(0, -2.0), picture(0, -11.0), floor=-8.0).mel, 6.0)
