"""Reading a long text ends when it is cancelled."""

import string

import numpy as np
import pytest

from paretone.errors import Cancelled
from paretone.front_end.reading import NaturalReader
from paretone.observer import may_stop, stoppable
from tests.engine.recorder import Follower

WORD = "".join(np.random.default_rng(0).choice(list(string.ascii_lowercase), 20_000))


@pytest.mark.parametrize("text", ["7" * 4_000, "a" * 20_000, WORD, "Blorptik wug. " * 1_400])
def test_a_long_text_asks_again_and_again(text: str) -> None:
    follower = Follower(cancel_at=40)
    with stoppable(follower.check), pytest.raises(Cancelled):
        NaturalReader().pieces(text)
    assert follower.checks == 40
    may_stop()  # Afterwards nothing is cancelled any more.
