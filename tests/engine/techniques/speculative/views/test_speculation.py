"""Savings of drafts by tolerance and by length, against the traces that they are computed from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.techniques.speculative.view import PAPER, TOLERANCES, paired_speed_up
from paretone.views.figure import Lines
from tests.engine.small_language import write_model
from tests.engine.speaking import load, view

pytestmark = pytest.mark.slow


def test_the_sweep_has_every_tolerance_and_every_length(language_model: LmMiniSpeech) -> None:
    figure = view(language_model, "speculation", sentences=1, longest=2, tolerance=0.2)
    tolerance, length = figure.panels[:2]
    assert isinstance(tolerance, Lines)
    measured, predicted, paper, plain = tolerance.curves
    assert measured.x == TOLERANCES
    assert paper.y == pytest.approx(tuple(PAPER.values()))
    assert plain.y == (1.0, 1.0)
    assert all(value > 0 for value in (*measured.y, *predicted.y))
    assert all(low <= value <= high for low, value, high in zip(measured.low, measured.y, measured.high, strict=True))
    assert length.curves[0].x == (1.0, 2.0)
    tokens = figure.panels[-1].curves[0]
    assert all(1 <= each <= most + 1 for most, each in zip((1, 2), tokens.y, strict=True))
    assert f"{measured.y[0]:.2f}× as fast at β = 0" in figure.caption


def test_a_draft_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="no draft to propose tokens"):
        view(load(write_model(tmp_path / "bare")), "speculation")


def test_speed_ups_are_paired_by_sentence() -> None:
    reference = np.array([0.4, 0.8, 0.2])
    found, low, high = paired_speed_up(reference / 2, reference)
    assert (found, low, high) == pytest.approx((2.0, 2.0, 2.0)), "every sentence is twice as fast, whichever is drawn"
