"""Views of layers against the tensors and the measurements that they are computed from, on a small real model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, FILE, WORD_ERROR, LayerImportance, read_record
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.views.figure import Bars
from tests.engine.small_language import write_model
from tests.engine.speaking import load, view, write_all

pytestmark = pytest.mark.slow


def test_memory_and_time_by_depth(language_model: LmMiniSpeech) -> None:
    figure = view(language_model, "depth", depths=3, rounds=1)
    memory, time = (panel.curves[0] for panel in figure.panels)
    assert memory.x == time.x == (1.0, 2.0, 3.0)
    own = language_model.own.tokens
    config = own.transformer.config
    # Four projections of attention, three of the feed-forward part, two norms.
    layer = 4 * (4 * 16 * 16 + 3 * 16 * 24 + 2 * 16)
    tokens = int(time.notes[2].split()[0])
    cache = 2 * config.key_value_heads * config.head_width * tokens * 4
    steps = np.diff(memory.y) * 2**20
    assert steps == pytest.approx([layer + cache] * 2, rel=1e-6)
    assert all(value > 0 for value in time.y)


def test_depth_needs_a_measurement(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="is not measured yet"):
        view(load(write_model(tmp_path / "bare")), "depth")


def test_layer_importance_draws_the_measurement_at_hand(language_model: LmMiniSpeech, tmp_path: Path) -> None:
    root = write_all(tmp_path / "model")
    place = root / FILE
    record = read_record((root,), language_model.info.fingerprint)
    ends = (0.1, 0.2, 0.3), (0.3, 0.4, 0.5)
    for one in (
        LayerImportance(DIVERGENCE, (0.2, 0.3, 0.4), *ends, ((0, 1), (0, 2), (2, 2)), 0.0, 4),
        LayerImportance(COSINE, (0.4, 0.2, 0.1)),
    ):
        record = record.with_measure(one)
    record.write(place)
    figure = view(load(root), "layer-importance")
    assert [panel.y.title for panel in figure.panels] == ["WLI", "KL", "1 − cosine"]
    errors, divergence, _ = figure.panels
    assert isinstance(errors, Bars)
    assert errors.series[0].values == (300.0, 100.0, 200.0), "in per cent"
    assert divergence.series[0].low == ends[0]
    assert divergence.series[0].notes[1] == "rank 1 to 3"
    assert "the most important layers are 0, 2, 1" in figure.caption


def test_layers_that_word_errors_leave_equal_are_compared_by_what_decides_between_them(tmp_path: Path) -> None:
    root = write_all(tmp_path / "model")
    record = read_record((root,), load(root).info.fingerprint)
    for one in (
        LayerImportance(WORD_ERROR, (0.0, 0.0, 0.0), utterances=4),
        LayerImportance(DIVERGENCE, (0.2, 0.3, 0.4)),
        LayerImportance(COSINE, (0.4, 0.2, 0.1)),
    ):
        record = record.with_measure(one)
    record.write(root / FILE)
    caption = view(load(root), "layer-importance").caption
    assert "half of the layers keeps 2" in caption
    assert "Of the 1 layers that the cosine would keep, 0 are among those that word errors would" in caption
