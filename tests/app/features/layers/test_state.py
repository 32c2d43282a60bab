"""Which layers stay, without any engine: by measurement, by hand, and back again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from paretone.errors import SettingError
from paretone.models.base import ModelInfo
from paretone.models.files.layer_importance import DIVERGENCE, FILE, ImportanceRecord, LayerImportance
from paretone.techniques import spade
from paretone_app.features.layers.presenter import LayerChoice
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs

INFO = ModelInfo(
    "lm-mini",
    "LM mini",
    "language",
    "llama",
    "",
    "f" * 64,
    "Apache-2.0",
    "CPU",
    "float32",
    24000,
    layers=4,
    branches=1,
    parameters=1,
    text_front_end="",
)
RECORD = ImportanceRecord("lm-mini", "f" * 64, 4, (LayerImportance(DIVERGENCE, (7.0, 0.1, 0.2, 0.3)),))


@pytest.fixture
def state(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppState:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    made = AppState(Jobs(lambda command: None))
    made.selection.model_id = "lm-mini"
    made.selection.info = replace(INFO, checkpoint=str(tmp_path / "model" / "model.safetensors"))
    return made


@pytest.fixture
def choice(state: AppState, tmp_path: Path) -> LayerChoice:
    RECORD.write(tmp_path / "model" / FILE)
    made = LayerChoice(state)
    state.selection.model_changed.emit()
    state.selection.set_knob(spade.NAME, "depth", 2)
    return made


def test_the_most_important_layers_stay(choice: LayerChoice) -> None:
    assert choice.record == RECORD
    assert choice.retained == (0, 3)
    choice.set_depth(3)
    assert choice.retained == (0, 2, 3)
    choice.set_depth(9)
    assert (choice.depth, choice.retained) == (4, (0, 1, 2, 3))


def test_half_of_the_models_layers_stay_unless_another_number_is_chosen(choice: LayerChoice, state: AppState) -> None:
    state.selection.set_knob(spade.NAME, "depth", spade.TECHNIQUE.knobs[0].default)
    assert (choice.depth, choice.retained) == (2, (0, 3))
    state.selection.info = replace(state.selection.info, layers=24)
    assert choice.depth == 12


def test_a_layer_chosen_by_hand_decides_until_it_is_taken_back(choice: LayerChoice, state: AppState) -> None:
    choice.toggle(1)
    assert (choice.by_hand, choice.retained) == (True, (0, 1, 3))
    choice.toggle(0)
    assert state.selection.knobs(spade.NAME)["layers"] == "1,3"
    state.undo_stack.undo()
    assert choice.retained == (0, 1, 3)
    choice.choose_by_importance()
    assert (choice.by_hand, choice.retained) == (False, (0, 3))
    state.undo_stack.undo()
    assert choice.retained == (0, 1, 3)


def test_successive_changes_of_the_depth_are_one_step_back(choice: LayerChoice, state: AppState) -> None:
    for depth in (3, 4, 1):
        choice.set_depth(depth)
    assert choice.retained == (0,)
    state.undo_stack.undo()
    assert choice.depth == 2


def test_the_last_layer_stays(choice: LayerChoice) -> None:
    choice.set_depth(1)
    with pytest.raises(SettingError, match="Keep at least one layer"):
        choice.toggle(0)


def test_a_measurement_of_another_checkpoint_is_not_taken_up(choice: LayerChoice, state: AppState) -> None:
    choice.take_up(replace(RECORD, checkpoint="0" * 64))
    assert choice.record == RECORD
    state.selection.info = replace(state.selection.info, fingerprint="0" * 64)
    state.selection.model_changed.emit()
    assert choice.record is None
    assert choice.retained == (0, 1, 2, 3), "nothing says which to leave out"


def test_a_damaged_measurement_is_said(choice: LayerChoice, state: AppState, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "model" / FILE).write_text("{")
    with qtbot.waitSignal(choice.problem) as problem:
        state.selection.model_changed.emit()
    assert FILE in problem.args[0]


def test_models_without_tokens_have_no_layers_to_leave_out(choice: LayerChoice, state: AppState) -> None:
    state.selection.info = replace(state.selection.info, family="flow")
    state.selection.model_changed.emit()
    assert (choice.layers, choice.retained) == (0, ())
