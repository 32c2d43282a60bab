from __future__ import annotations

import numpy as np
import pytest

from engine.training.recipes.durations import duration_table
from tests.engine.front_end.arctic import VOCABULARY
from tests.engine.training.toy_corpus import toy_clip


def test_the_duration_table_holds_means_of_what_is_frequent_and_of_every_phone():
    clips = [toy_clip("slt", seed, 200) for seed in range(20)]
    table = duration_table(clips, VOCABULARY.phones)
    seconds = [end - start for clip in clips for phone, start, end in clip.phones[:-1] if phone == "iy"]
    assert table["iy"] == pytest.approx(np.mean(seconds), abs=1e-4)
    assert {key for key in table if "/" not in key} == set(VOCABULARY.phones)
    assert table["zh"] == pytest.approx(
        np.mean([end - start for clip in clips for _, start, end in clip.phones[:-1]]), abs=1e-4
    )
    assert all(value > 0 for value in table.values())
    rare = duration_table(clips[:1], VOCABULARY.phones)
    assert not any(key.count("/") == 3 for key in rare)
