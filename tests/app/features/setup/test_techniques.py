"""The techniques in Setup: declared knobs, what they come to, and why they cannot be used, before anything is run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.models.base import WeightSet
from paretone.session.events import Prepared
from paretone.setting.knobs import NO_VALUES
from paretone.techniques import technique
from paretone.techniques.resolving import NO_GUIDANCE
from paretone.training.requests import Trained
from paretone_app.features.setup.cards import TechniqueCard
from paretone_app.features.setup.choices import ModelActions
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.shell.colours import LIGHT
from tests.app.acting import acts_of
from tests.app.presenters import Presenter, calibrated
from tests.app.records import STEPS

TWO_THIRDS = WeightSet("there", "1" * 64, 2 / 3, "model-guidance")


@pytest.fixture
def presenter(tmp_path: Path, qtbot: QtBot) -> Presenter:
    return Presenter(tmp_path / "calibrations")


@pytest.fixture
def panel(presenter: Presenter, qtbot: QtBot) -> SetupPanel:
    made = SetupPanel(presenter.state, LIGHT, acts_of(ModelActions))
    qtbot.addWidget(made)
    made.show()
    return made


def give_weights(presenter: Presenter) -> None:
    """As an engine does once a training has ended."""
    info = replace(presenter.state.selection.info, weight_sets=(TWO_THIRDS,))
    presenter.state.follow(Prepared(9, "guidance_free", Trained("there", "It learnt.", NO_VALUES, 10, 1.0, {}), info))


def test_a_technique_takes_one_line_until_it_is_used(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    for one in presenter.state.selection.techniques:
        group = panel.techniques.groups[one.name]
        used = presenter.state.selection.is_used(one.name)
        assert group.isChecked() is used
        assert group.controls.isVisibleTo(panel) is used
    group = panel.techniques.groups["steps"]
    group.setFocus()
    qtbot.keyClick(group, Qt.Key.Key_Space)
    assert presenter.state.selection.is_used("steps")
    assert group.controls.isVisibleTo(panel)


def test_what_the_knobs_come_to_is_said_as_they_change(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    presenter.state.selection.switch("steps", True)
    group = panel.techniques.groups["steps"]
    assert group.meaning.text().startswith("7 steps at 0 2 4 6 8 16 24 32 of 32 (EPSS)")
    assert len(group.grid.times) == 8
    assert len(group.grid.others) == STEPS + 1
    qtbot.keyClick(group.controls.editor("steps"), Qt.Key.Key_Up)
    assert group.meaning.text().startswith("8 steps evenly spaced")
    assert len(group.grid.times) == 9
    assert "EPSS has tables for" in group.remarks.text()
    assert presenter.state.selection.options["steps"] == STEPS, "the baseline keeps its own"


def test_a_table_on_another_grid_is_refused_with_the_reason(panel: SetupPanel, presenter: Presenter) -> None:
    state = calibrated(presenter)
    reason = panel.techniques.groups["ditreducio"].reason
    assert state.availability.why_not_accelerate() == ""
    state.selection.switch("steps", True)
    assert "number of steps 4, but 7" in reason.text()
    assert reason.isVisibleTo(panel)
    assert state.availability.why_not_accelerate() == reason.text()
    assert reason.text() in panel._cost.text()
    state.selection.set_knob("steps", "steps", STEPS)
    assert not reason.isVisibleTo(panel)


def test_steps_alone_are_foreseen_in_the_cost(panel: SetupPanel, presenter: Presenter) -> None:
    state = calibrated(presenter)
    state.selection.switch("ditreducio", False)
    state.selection.switch("steps", True)
    state.selection.set_knob("steps", "steps", 2)
    assert state.cost.ops_ratio == pytest.approx(2 / STEPS)
    assert "<b>50.0 %</b>" in panel._cost.text()
    give_weights(presenter)
    state.selection.switch("guidance_free", True)
    assert state.cost.ops_ratio == pytest.approx(1 / STEPS)
    assert "<b>25.0 %</b>" in panel._cost.text()


def test_rivals_say_at_once_that_they_cannot_share(panel: SetupPanel, presenter: Presenter) -> None:
    state = calibrated(presenter)
    for name in ("error_curve", "first_block", "guidance_interval"):
        state.selection.switch(name, True)
        assert "do without one" in panel.techniques.groups[name].reason.text()
        assert panel.techniques.groups[name].reason.text() == state.availability.why_not_accelerate()
        state.selection.switch(name, False)
        assert state.availability.why_not_accelerate() == ""


def test_a_precision_that_brings_nothing_is_foretold(panel: SetupPanel, presenter: Presenter) -> None:
    state = calibrated(presenter)
    state.selection.switch("precision", True)
    assert any("does not gain from bfloat16" in note for note in state.availability.notes)
    assert not panel.techniques.groups["precision"].reason.isVisibleTo(panel)
    assert state.availability.why_not_accelerate() == "", "float32 speaks instead"
    state.selection.set_knob("precision", "precision", "float32")
    assert not any("does not gain from" in note for note in state.availability.notes)


def test_a_weight_without_weights_offers_to_train_them(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    state, group = presenter.state, panel.techniques.groups["guidance_free"]
    state.selection.switch("guidance_free", True)
    assert group.meaning.text().startswith("w = 0.67 equals guidance g = 2.03")
    assert "no CFG-free weights for w = 0.67" in group.reason.text()
    assert group.train.isVisibleTo(panel)
    with qtbot.waitSignal(panel.training_wanted) as wanted:
        qtbot.mouseClick(group.train, Qt.MouseButton.LeftButton)
    assert wanted.args == ["guidance_free", {"weight": 0.67}]
    give_weights(presenter)
    assert state.selection.info.weight_sets == (TWO_THIRDS,)
    assert not group.train.isVisibleTo(panel)
    assert not group.reason.isVisibleTo(panel)


def test_cfg_free_takes_the_guidance_control_away_and_says_why(panel: SetupPanel, presenter: Presenter) -> None:
    guidance = panel.sampler.editor("guidance")
    assert guidance.isEnabled()
    presenter.state.selection.switch("guidance_free", True)
    assert not guidance.isEnabled()
    assert "guidance in its weights" in guidance.toolTip()
    assert "guidance in its weights" in panel._notes.text()
    presenter.state.selection.switch("guidance_free", False)
    assert guidance.isEnabled()
    assert not panel._notes.isVisibleTo(panel)


def test_a_checkpoint_that_is_cfg_free_itself_takes_no_guidance(panel: SetupPanel, presenter: Presenter) -> None:
    presenter.state.selection.info = replace(presenter.state.selection.info, trained_guidance=0.5)
    presenter.state.selection.model_changed.emit()
    assert not panel.sampler.editor("guidance").isEnabled()
    assert "w = 0.50" in panel._notes.text()
    presenter.state.selection.switch("guidance_free", True)
    assert "already CFG-free" in panel.techniques.groups["guidance_free"].reason.text()
    assert not panel.techniques.groups["guidance_free"].train.isVisibleTo(panel)


def test_no_guidance_is_called_what_it_is(panel: SetupPanel, presenter: Presenter) -> None:
    presenter.state.selection.set_option("guidance", 0.0)
    assert panel._notes.text() == NO_GUIDANCE["flow"]
    assert panel._notes.isVisibleTo(panel)


def test_of_several_weights_that_fit_one_is_chosen(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    state, group = presenter.state, panel.techniques.groups["guidance_free"]
    state.selection.switch("guidance_free", True)
    give_weights(presenter)
    assert not group.weights.isVisibleTo(panel), "there is nothing to choose from"
    own = WeightSet("own/w-0.67.safetensors", "2" * 64, 0.67, "distillation")
    info = replace(state.selection.info, weight_sets=(TWO_THIRDS, own))
    state.follow(Prepared(9, "guidance_free", Trained(own.path, "It learnt.", NO_VALUES, 10, 1.0, {}), info))
    assert group.weights.isVisibleTo(panel)
    assert [group.weights.itemText(row) for row in range(2)] == [
        "w = 0.67, distillation (w-0.67)",
        "w = 0.67, model-guidance (there)",
    ]
    assert state.selection.setting.technique("guidance_free").artefact == ""
    group.weights.setFocus()
    qtbot.keyClick(group.weights, Qt.Key.Key_Down)
    assert state.selection.setting.technique("guidance_free").artefact == TWO_THIRDS.fingerprint
    state.selection.set_knob("guidance_free", "weight", 0.5)
    assert state.selection.setting.technique("guidance_free").artefact == "", "what does not fit is not used"


def test_whose_technique_it_is_stands_below_the_title(qtbot: QtBot) -> None:
    card = TechniqueCard(technique("guidance_interval"), LIGHT)
    qtbot.addWidget(card)
    assert card.title() == "Guidance on the first k steps"
