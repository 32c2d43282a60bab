"""The application's state, without any window."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.state.app_state import AppState
from app.state.calibration_store import CalibrationStore
from app.state.comparison import measured_against
from app.state.jobs import Jobs
from app.state.selection import DITREDUCIO
from engine.errors import SettingError
from engine.models.base import Voice
from engine.sampling.actions import SkipAction
from engine.session.messages import Calibrate, CalibrationReady, LoadModel, Synthesise, TakeReady
from engine.setting.profile import Profile
from tests.app.presenters import OPERATIONS, Presenter, calibrated
from tests.app.records import STEPS, record


@pytest.fixture
def presenter(tmp_path: Path, qtbot: QtBot) -> Presenter:
    return Presenter(tmp_path / "calibrations")


def test_nothing_can_be_done_before_the_model_is_loaded(tmp_path: Path, qtbot: QtBot) -> None:
    state = AppState(Jobs(lambda command: None), CalibrationStore(tmp_path))
    assert "not loaded" in state.why_not_synthesise()
    with pytest.raises(SettingError, match="not loaded"):
        state.synthesise_baseline()


def test_baseline_and_accelerated_share_seed_options_and_text(presenter: Presenter) -> None:
    state = calibrated(presenter)
    state.set_seed(42)
    state.synthesise_baseline()
    state.synthesise_accelerated()
    baseline, accelerated = (one for one in presenter.sent if isinstance(one, Synthesise))
    assert baseline.setting == accelerated.setting.baseline
    assert (baseline.text, baseline.voice) == (accelerated.text, accelerated.voice)
    assert baseline.artefacts == ()
    assert accelerated.artefacts == (state.table,)
    assert accelerated.setting.engaged(DITREDUCIO).artefact == state.table.fingerprint
    assert all(difference.technique for difference in baseline.setting.differences(accelerated.setting))


def test_an_unlocked_seed_is_drawn_anew_for_each_baseline_only(presenter: Presenter) -> None:
    state = calibrated(presenter)
    state.set_seed_locked(False)
    state.synthesise_baseline()
    state.synthesise_accelerated()
    first, second = (one.setting.seed for one in presenter.sent if isinstance(one, Synthesise))
    assert first == second
    state.synthesise_baseline()
    assert presenter.sent[-1].setting.seed != first


def test_accelerating_needs_a_table_that_fits(presenter: Presenter) -> None:
    state = presenter.state
    assert "calibrate first" in state.why_not_accelerate()
    calibrated(presenter)
    assert state.why_not_accelerate() == ""
    state.set_option("guidance", 3.0)
    assert "guidance" in state.why_not_accelerate()
    state.set_option("guidance", 2.0)
    assert state.why_not_accelerate() == ""
    state.set_option("solver", "midpoint")
    assert "Euler" in state.why_not_accelerate()
    state.engage(DITREDUCIO, False)
    assert "at least one technique" in state.why_not_accelerate()


def test_a_calibration_is_taken_up_again_when_its_grid_comes_back(presenter: Presenter) -> None:
    state = calibrated(presenter)
    table = state.table
    state.set_option("steps", 8)
    assert state.table_problem()
    state.handle(CalibrationReady(3, record(steps=8), OPERATIONS, 1.0))
    assert state.table.steps == 8
    state.set_option("steps", STEPS)
    assert state.table == table


def test_the_threshold_moves_the_table_live_and_can_be_undone(presenter: Presenter) -> None:
    state = calibrated(presenter)
    before = state.table
    for threshold in (0.11, 0.12, 0.2, 0.5):
        state.set_knob(DITREDUCIO, "threshold", threshold)
    assert state.table.skipped_share > before.skipped_share
    assert state.threshold == 0.5
    assert state.predicted_ops_ratio == state.table.ops_ratio(OPERATIONS) < 1
    assert state.undo_stack.count() == 1, "one drag is one step"
    state.undo_stack.undo()
    assert (state.table, state.threshold) == (before, 0.1)
    state.undo_stack.redo()
    assert state.threshold == 0.5


def test_an_edited_table_is_used_and_compared_with_the_calibrated_one(presenter: Presenter) -> None:
    state = calibrated(presenter)
    before = state.table
    assert state.other_table == state.record.table
    state.adopt_table(before.changed(2, 3, SkipAction.BS))
    assert state.table.actions[2][3] is SkipAction.BS
    assert state.setting.engaged(DITREDUCIO).artefact == state.table.fingerprint != before.fingerprint
    assert state.other_table == before


def test_an_official_table_comes_in_only_where_it_fits(presenter: Presenter) -> None:
    state = calibrated(presenter)
    official = json.dumps(state.table.changed(1, 2, SkipAction.BS).to_official())
    state.import_table(official, "4_0.1.json")
    assert state.table.actions[1][2] is SkipAction.BS
    with pytest.raises(SettingError, match="2 layers"):
        state.import_table(json.dumps({"methods": [["NONE"] * STEPS] * 2}), "small.json")
    with pytest.raises(SettingError, match="not JSON"):
        state.import_table("{", "broken.json")


def test_the_application_warns_when_more_than_the_technique_differs(presenter: Presenter) -> None:
    state = calibrated(presenter)
    state.set_a(presenter.take(state.baseline_setting))
    state.set_b(presenter.take(state.setting, "two"))
    assert state.comparison_warning() == ""
    assert [one.what for one in state.differences()] == [DITREDUCIO]
    state.set_b(presenter.take(replace(state.setting, seed=5), "three", "Another text."))
    assert "text and seed" in state.comparison_warning()


def test_takes_become_a_and_b_and_the_distance_is_measured(presenter: Presenter) -> None:
    state = calibrated(presenter)
    added = []
    state.take_added.connect(added.append)
    state.handle(TakeReady(1, presenter.take(state.baseline_setting, "base", mel=1.0), OPERATIONS))
    state.handle(TakeReady(2, presenter.take(state.setting, "fast", mel=1.5), OPERATIONS))
    assert (state.take_a.id, state.take_b.id) == ("base", "fast")
    assert state.take_b.log_mel_distance == pytest.approx(0.5)
    assert state.take_b.fidelity_to == "base"
    assert added[1] is state.take_b


def test_no_distance_is_measured_to_what_is_not_the_baseline(presenter: Presenter) -> None:
    state = calibrated(presenter)
    fast = presenter.take(state.setting, "fast")
    assert measured_against(fast, None) is fast
    assert measured_against(fast, presenter.take(replace(state.baseline_setting, seed=9))) is fast
    assert measured_against(fast, presenter.take(state.baseline_setting, text="Another text.")) is fast


def test_a_take_can_be_run_again(presenter: Presenter) -> None:
    state = calibrated(presenter)
    take = presenter.take(replace(state.setting, seed=77), text="Read verse out loud for pleasure.")
    state.engage(DITREDUCIO, False)
    state.set_option("speed", 1.5)
    state.use_setting(take)
    assert state.setting == take.setting
    assert state.text == take.text
    with pytest.raises(SettingError, match="E2TTS_Base"):
        state.use_setting(replace(take, setting=replace(take.setting, model="E2TTS_Base")))


def test_the_profile_holds_setting_table_and_evidence(presenter: Presenter, tmp_path: Path) -> None:
    state = calibrated(presenter)
    state.handle(TakeReady(1, presenter.take(state.baseline_setting, "base"), OPERATIONS))
    state.handle(TakeReady(2, presenter.take(state.setting, "fast"), OPERATIONS))
    state.write_profile(tmp_path / "p.json")
    profile = Profile.load(tmp_path / "p.json")
    assert profile.setting == state.setting
    assert profile.artefact("table") == state.table
    assert profile.evidence.metrics["speed_up"] == pytest.approx(1.0)


def test_the_selection_survives_a_restart_and_rubbish_does_not_hurt(presenter: Presenter, tmp_path: Path) -> None:
    state = presenter.state
    state.add_voice(Voice("own:/tmp/me.wav", "me", "/tmp/me.wav", "That is me."))
    state.set_text("Something else.")
    state.set_seed(99)
    state.set_option("steps", 10)
    state.set_knob(DITREDUCIO, "marked", 25.0)
    again = AppState(Jobs(lambda command: None), CalibrationStore(tmp_path / "none"))
    again.recall(state.remembered())
    assert (again.text, again.seed, again.voice, again.setting.options["steps"]) == (
        "Something else.",
        99,
        state.voice,
        10,
    )
    assert again.knobs(DITREDUCIO)["marked"] == 25.0
    for rubbish in ("", "{", "[]", '{"seed": -4, "options": {"steps": 100000}, "own_voices": [1], "knobs": 3}'):
        again.recall(rubbish)
    assert again.seed == 99


def test_calibration_is_asked_for_without_an_artefact(presenter: Presenter) -> None:
    state = calibrated(presenter)
    state.calibrate()
    command = presenter.sent[-1]
    assert isinstance(command, Calibrate)
    assert command.setting.engaged(DITREDUCIO).artefact == ""
    assert isinstance(presenter.sent[0], LoadModel)
