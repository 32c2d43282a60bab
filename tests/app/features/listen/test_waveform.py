from __future__ import annotations

import numpy as np

from paretone_app.features.listen.plots import outline


def test_no_sample_is_missed() -> None:
    samples = np.zeros(100_003, np.float32)
    samples[77_777], samples[100_002] = 0.9, -0.8
    times, values = outline(samples, 48000, 0.0, 3.0, 500)
    assert len(times) == len(values) <= 1002
    assert values.max() == np.float32(0.9)
    assert values.min() == np.float32(-0.8)
    assert abs(times[values.argmax()] - 77_777 / 48000) < 0.01
    assert (np.diff(times) >= 0).all()


def test_a_close_look_shows_the_samples() -> None:
    samples = np.arange(1000, dtype=np.float32)
    times, values = outline(samples, 1000, 0.1, 0.2, 500)
    np.testing.assert_array_equal(values, samples[100:201])
    np.testing.assert_allclose(times, np.arange(100, 201) / 1000)


def test_outside_the_take_there_is_nothing() -> None:
    times, values = outline(np.ones(10, np.float32), 1000, 5.0, 6.0, 100)
    assert len(times) == len(values) == 0
