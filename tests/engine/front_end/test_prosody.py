"""When each sound of a sentence is spoken."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.front_end.phones import EDGE
from paretone.front_end.reading import EMPHASISED, LEAD, LONGER, TAIL, TEMPOS, Prosody, word_at

SENTENCE = "ɡˈO ðˈɛɹ, nˈW."


def _units(symbols: object) -> np.ndarray:
    return np.full(len(SENTENCE) + 2, 4.0, np.float32)


def test_lengths_are_divided_by_tempo_and_speed_and_the_silence_at_the_ends_is_short():
    usual, fast = (Prosody(tempo).spoken(SENTENCE, _units, speed) for tempo, speed in ((1.0, 1.0), (1.25, 1.6)))
    assert usual[0] == (EDGE, 0.0, LEAD * 0.0125)
    assert usual[-1][2] - usual[-1][1] == pytest.approx(min(TAIL, 8) * 0.0125)
    assert usual[1][2] - usual[1][1] == pytest.approx(0.1)
    assert fast[-1][2] == pytest.approx(usual[-1][2] / 2)


def test_an_emphasised_word_is_longer_and_nothing_else():
    usual, other = Prosody().spoken(SENTENCE, _units, 1.0), Prosody(1.0, 0.5, 1.0).spoken(SENTENCE, _units, 1.0)
    lengths = [[end - start for _, start, end in phones] for phones in (usual, other)]
    longer = np.flatnonzero(~np.isclose(*lengths))
    assert "".join(usual[place][0] for place in longer) == "ðˈɛɹ"
    inside = [sum(one[place] for place in longer) for one in lengths]
    assert inside[1] / inside[0] == pytest.approx(1 + LONGER, rel=0.03)


def test_words_are_found_by_their_share():
    symbols = (EDGE, *SENTENCE, EDGE)
    found = ["".join(symbols[place] for place in word_at(symbols, share)) for share in (0.0, 0.4, 0.99)]
    assert found == ["ɡˈO", "ðˈɛɹ", "nˈW"]
    assert not len(word_at((EDGE, ".", EDGE), 0.5))


def test_paces_are_drawn_as_the_training_speech_has_them():
    drawn = [Prosody.drawn(seed, 0) for seed in range(400)]
    assert Prosody.drawn(-1) == Prosody.drawn(-1)
    assert drawn[7] == Prosody.drawn(7, 0) != Prosody.drawn(7, 1)
    assert TEMPOS[0] <= min(one.tempo for one in drawn) and max(one.tempo for one in drawn) <= TEMPOS[1]
    assert np.mean([one.emphasis is not None for one in drawn]) == pytest.approx(EMPHASISED, abs=0.08)
