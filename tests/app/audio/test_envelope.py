from __future__ import annotations

import numpy as np

from paretone_app.audio.sound import Envelope


def test_pieces_make_the_same_outline_as_the_whole() -> None:
    samples = np.random.default_rng(0).uniform(-1, 1, 50_003).astype(np.float32)
    whole, grown = Envelope(24000, samples), Envelope(24000)
    for piece in np.array_split(samples, 17):
        grown.append(piece)
    assert whole.seconds == grown.seconds == len(samples) / 24000
    np.testing.assert_array_equal(whole.columns(300, whole.seconds), grown.columns(300, grown.seconds))


def test_no_sample_is_missed_and_the_rest_stays_empty() -> None:
    samples = np.zeros(48_000, np.float32)
    samples[30_000], samples[47_999] = 0.9, -0.8
    envelope = Envelope(24000, samples)
    lowest, highest = envelope.columns(100, 4.0)
    assert len(lowest) == 50, "the sound fills half of the room"
    assert highest.argmax() == int(30_000 / 48_000 * 50) and highest.max() == np.float32(0.9)
    assert lowest.argmin() == 49 and envelope.peak == np.float32(0.9)


def test_what_has_not_begun_has_no_outline() -> None:
    envelope = Envelope(24000)
    assert envelope.columns(100, 1.0).shape == (2, 0) and envelope.peak == 0.0
    for _ in range(40):
        envelope.append(np.ones(24_000, np.float32))
    assert envelope.columns(10, 40.0).shape == (2, 10)
