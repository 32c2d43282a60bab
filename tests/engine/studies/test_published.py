"""The papers' tables, compared with the papers' text."""

from __future__ import annotations

import pytest

from paretone.studies.published import PublishedPoint, published
from paretone.techniques import techniques


def point(paper: str, model: str, label: str) -> PublishedPoint:
    (found,) = (one for one in published() if (one.paper, one.model, one.label) == (paper, model, label))
    return found


def test_ratios_are_those_that_the_papers_speak_of() -> None:
    # "a 1.6× improvement in RTF" is F5-TTS at its largest threshold.
    assert point("DiTReducio", "F5-TTS", "T6").ratios["speed_up"] == pytest.approx(1.59, abs=0.005)
    assert point("DiTReducio", "F5-TTS", "T4 (recommended)").ratios["speed_up"] == pytest.approx(1.38, abs=0.005)
    assert point("DiTReducio", "MegaTTS 3", "T6").ratios["ops_ratio"] == pytest.approx(0.2752)
    assert point("CFG-free", "F5-TTS", "CFG-free, 7 steps").ratios["speed_up"] == pytest.approx(7.75)
    # "1.4× faster synthesis"
    assert point("SSD", "CosyVoice 2", "β = 0.4").ratios["speed_up"] == pytest.approx(1.4)
    # "accelerates inference by 42.6 %", "improves RTF by 45.9 %", and LLaSA by 29.3 %
    assert 1 - point("SPADE", "CosyVoice 2", "12 layers").ratios["real_time_factor"] == pytest.approx(0.426, abs=5e-4)
    assert 1 - point("SPADE", "CosyVoice 2", "9 layers").ratios["real_time_factor"] == pytest.approx(0.459, abs=5e-4)
    assert 1 - point("SPADE", "LLaSA-1B", "8 layers").ratios["real_time_factor"] == pytest.approx(0.293, abs=5e-4)
    assert point("OmniVoice roofline", "OmniVoice", "block by block").ratios["speed_up"] == pytest.approx(6.5)


def test_every_point_says_where_it_is_from() -> None:
    names = {one.name for one in techniques()} | {""}
    assert len({one.paper for one in published()}) == 5
    for one in published():
        assert one.source and one.hardware and one.data and one.model
        assert one.technique in names
        assert one.baseline == all(ratio == 1.0 for ratio in one.ratios.values())
