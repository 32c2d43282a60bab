"""OmniVoice's passages as one sound, whole and in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.models.omnivoice.sound import StreamedPassages, WholePassages

RATE = 24000
TENTH = RATE // 10


def tone(seconds: float, level: float = 0.4) -> np.ndarray:
    return (level * np.sin(np.arange(int(seconds * RATE)) / 9)).astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(int(seconds * RATE), np.float32)


def test_whole_passages_stand_between_silences() -> None:
    joiner = WholePassages(RATE, level=0.2, cut=False)
    assert joiner.begin() == 0
    first = joiner.push(tone(1.0))
    assert (joiner.lead, joiner.begin()) == (TENTH, len(first))
    whole = np.concatenate([first, joiner.push(tone(0.5)), joiner.finish()])
    assert len(whole) == int(1.5 * RATE) + 3 * TENTH
    for start in (0, len(first), len(whole) - TENTH):
        assert not whole[start : start + TENTH].any()
    # What is far from the edges is untouched: the reference was loud enough.
    assert np.array_equal(first[3 * TENTH : 5 * TENTH], tone(1.0)[2 * TENTH : 4 * TENTH])


def test_silence_is_cut_and_where_speech_begins_is_told() -> None:
    joiner = WholePassages(RATE, level=None, cut=True)
    joiner.begin()
    given = joiner.push(np.concatenate([silence(0.6), tone(1.0), silence(0.9)]))
    # A tenth of a second stays at either end, between the silences around it.
    assert len(given) == pytest.approx(RATE + 3 * TENTH, abs=RATE // 50)
    assert joiner.lead == pytest.approx(TENTH - 0.5 * RATE, abs=RATE // 50)
    assert np.abs(given).max() == pytest.approx(0.5, abs=0.01)


def test_a_quiet_reference_makes_quiet_speech() -> None:
    joiner = WholePassages(RATE, level=0.05, cut=False)
    joiner.begin()
    assert np.abs(joiner.push(tone(1.0))).max() == pytest.approx(0.2, abs=0.001)


@pytest.mark.parametrize("sizes", [(24000,), (1000, 3000, 20000), (500,) * 48])
def test_pieces_come_to_the_same_however_they_come(sizes: tuple[int, ...]) -> None:
    joiner, speech = StreamedPassages(RATE, level=0.2), tone(1.0)
    assert joiner.begin() == 0
    pieces, start = [], 0
    for size in sizes:
        pieces.append(joiner.push(speech[start : start + size]))
        start += size
    second = joiner.begin()
    pieces += [joiner.push(speech), joiner.finish()]
    whole = np.concatenate(pieces)
    assert second == RATE + TENTH
    assert len(whole) == 2 * RATE + TENTH
    assert not whole[RATE:second].any()
    assert np.allclose(whole[TENTH : RATE - TENTH], speech[TENTH : RATE - TENTH])
    assert np.allclose(whole[second + TENTH : -TENTH], speech[TENTH:-TENTH])
    assert abs(whole[0]) < 1e-6 and abs(whole[-1]) < 1e-6
