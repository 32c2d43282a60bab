"""Reading a long text ends when it is cancelled."""

from __future__ import annotations

import string

import numpy as np
import pytest

from paretone.errors import Cancelled
from paretone.front_end.reading import NaturalReader
from paretone.observer import may_stop, stoppable

WORD = "".join(np.random.default_rng(0).choice(list(string.ascii_lowercase), 20_000))


@pytest.mark.parametrize("text", ["7" * 4_000, "a" * 20_000, WORD, "Blorptik wug. " * 1_400])
def test_a_long_text_asks_again_and_again(text: str) -> None:
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked == 40:
            raise Cancelled

    with stoppable(check), pytest.raises(Cancelled):
        NaturalReader().pieces(text)
    assert asked == 40
    may_stop()  # Afterwards nothing is cancelled any more.
