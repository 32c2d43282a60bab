"""How long the whole text will take, from what was measured, and when that is asked about first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paretone.session.events import ModelLoaded, TakeReady
from paretone.setting.take import Measurements
from paretone_app.numbers import rough_duration
from paretone_app.state.cost import LETTERS_A_SECOND, LONG_SECONDS
from tests.app.presenters import INFO, OPERATIONS, Presenter, calibrated


def measured(presenter: Presenter, text: str, seconds: float, accelerated: bool = False) -> None:
    """A take of ``text`` took ``seconds``, nine tenths of them in the backbone."""
    state = presenter.state
    setting = state.selection.setting if accelerated else state.selection.baseline_setting
    take = presenter.take(setting, text=text)
    figures = Measurements(seconds=seconds, audio_seconds=2.0, backbone_seconds=0.9 * seconds)
    state.follow(TakeReady(9, replace(take, measurements=figures), OPERATIONS))


def test_the_estimate_is_for_the_whole_text(presenter: Presenter) -> None:
    state = presenter.state
    setting = state.selection.baseline_setting
    state.selection.set_text("x" * 30_000)
    assert state.cost.expected_seconds(setting) is None
    measured(presenter, "y" * 50, 2.0)
    assert state.cost.expected_seconds(setting) == pytest.approx(1200.0)
    state.selection.set_seed(77)
    assert state.cost.expected_seconds(state.selection.baseline_setting) == pytest.approx(1200.0)
    state.selection.set_text("y" * 50)
    assert state.cost.expected_seconds(setting) == pytest.approx(2.0)


@pytest.mark.parametrize("other", [{"fingerprint": "a" * 64}, {"device": "cuda"}])
def test_other_weights_and_devices_take_another_time(presenter: Presenter, other: dict[str, str]) -> None:
    state = presenter.state
    setting = state.selection.baseline_setting
    measured(presenter, "y" * 50, 2.0)
    state.follow(ModelLoaded(1, replace(INFO, id="lm-mini"), 0.1))
    state.follow(ModelLoaded(1, INFO, 0.1))
    assert state.cost.expected_seconds(setting) is not None
    state.follow(ModelLoaded(1, replace(INFO, **other), 0.1))
    assert state.cost.expected_seconds(setting) is None


def test_what_techniques_save_comes_off_the_backbones_share_until_they_were_measured(presenter: Presenter) -> None:
    state = calibrated(presenter)
    measured(presenter, "y" * 50, 2.0)
    state.selection.set_text("y" * 100)
    ratio = state.cost.ops_ratio
    assert ratio is not None
    assert state.cost.expected_seconds(state.selection.setting) == pytest.approx(4.0 * (0.1 + 0.9 * ratio))
    measured(presenter, "y" * 50, 1.5, accelerated=True)
    assert state.cost.expected_seconds(state.selection.setting) == pytest.approx(3.0)


def test_more_than_five_minutes_are_asked_about(presenter: Presenter) -> None:
    state = presenter.state
    setting = state.selection.baseline_setting
    assert state.cost.why_ask(setting) == ""
    state.selection.set_text("x" * int(LETTERS_A_SECOND * LONG_SECONDS * 2))
    assert state.cost.why_ask(setting) == (
        "The whole text makes about 10 min of speech. "
        "How long that takes on this machine is not known before a first take."
    )
    measured(presenter, "y" * 9000, 250.0)
    assert state.cost.why_ask(setting) == ""
    measured(presenter, "y" * 9000, 1900.0)
    assert state.cost.why_ask(setting) == "Speaking the whole text takes about 32 min on this machine."


@pytest.mark.parametrize(("seconds", "text"), [(2.12, "2.1 s"), (31.6, "32 s"), (1900.0, "32 min"), (9000.0, "2.5 h")])
def test_durations_are_rough(seconds: float, text: str) -> None:
    assert rough_duration(seconds) == text
    assert rough_duration(2.12, tenths=False) == "2 s"
