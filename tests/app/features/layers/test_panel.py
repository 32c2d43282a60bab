"""The Layers panel as people use it: real key presses and clicks on the real widget."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QSignalSpy, QTest
from pytestqt.qtbot import QtBot

from paretone.errors import SettingError
from paretone.models.files.layer_importance import (
    COSINE,
    DIVERGENCE,
    FILE,
    WORD_ERROR,
    ImportanceRecord,
    LayerImportance,
    read_record,
)
from paretone.paths import own_place
from paretone.techniques import spade
from paretone_app.features.layers.panel import LayersPanel
from paretone_app.features.layers.presenter import LayerChoice
from paretone_app.plotting.words import Labels
from paretone_app.shell.colours import LIGHT
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs
from tests.app.acting import NamedActs, acts, items, press
from tests.app.conftest import in_front, on_screen
from tests.engine.known_model import LANGUAGE

KEY = Qt.Key
VALUES, LOW, HIGH = (0.9, 0.1, 0.05, 0.2), (0.5, 0.05, 0.02, 0.1), (1.2, 0.2, 0.1, 0.3)
RANKS = ((0, 0), (1, 3), (2, 3), (1, 2))
MEASURES = (
    LayerImportance(WORD_ERROR, VALUES, LOW, HIGH, RANKS, 0.02, 6, (3, 0, 0, 0)),
    LayerImportance(DIVERGENCE, (7.2, 0.05, 0.04, 0.27), utterances=6),
    LayerImportance(COSINE, (0.4, 0.1, 0.2, 0.3), utterances=6),
)
RECORD = ImportanceRecord("Small", "0" * 64, 4, MEASURES)


def layers_panel() -> LayersPanel:
    stages = (spade.NONE, spade.PARTLY, spade.RECOVERED)
    return LayersPanel(LIGHT, NamedActs(), dict(zip(stages, acts(3), strict=True)))


@pytest.fixture
def panel(qtbot: QtBot) -> LayersPanel:
    made = layers_panel()
    made.set_layers(4, RECORD, RECORD.retained(2), 2, by_hand=False)
    in_front(made, qtbot, 900, 500)
    made.setFocus()
    return made


def test_without_a_measurement_it_says_what_it_would_show(qtbot: QtBot) -> None:
    panel = layers_panel()
    panel.set_layers(4, None, (0, 1, 2, 3), 4, by_hand=False)
    on_screen(panel, qtbot)
    assert panel.pages.is_empty and "Measuring" in panel.pages.invitation.text()
    measure, by_hand = panel.pages.empty.buttons
    with qtbot.waitSignal(panel.can["measure"].triggered):
        measure.click()
    by_hand.click()
    assert panel.bars.isVisible(), "layers can be selected without a measurement"
    panel.set_layers(4, RECORD, RECORD.retained(2), 2, by_hand=False)
    assert panel.bars.isVisible()
    panel.set_reason("LM mini is being loaded.")
    assert panel.pages.is_empty and panel.pages.invitation.text() == "LM mini is being loaded."
    assert not by_hand.isEnabled()


def test_what_stays_and_why_is_said(panel: LayersPanel) -> None:
    assert panel.depth_box.text() == "2 of 4" and "2.00× faster" in panel.kept.text()
    assert "Layers 0, 3 are kept (by word errors)" in panel.kept.text()
    assert panel.bars.cut == (WORD_ERROR, pytest.approx(0.15)), "between layers 3 and 1"
    assert [one.measure for one in panel.bars.measures] == [WORD_ERROR, DIVERGENCE, COSINE]
    words = panel.bars.describe(0)
    assert "WLI 90.0 % (95 % interval 50.0 % to 120.0 %), rank 1" in words
    assert "3 of 6 utterances did not end" in words and "rank 2 to 4" in panel.bars.describe(1)


def test_the_cut_is_where_the_layers_are_parted(panel: LayersPanel) -> None:
    record = RECORD.with_measure(LayerImportance(WORD_ERROR, (0.9, 0.0, 0.0, 0.0), utterances=6))
    panel.set_layers(4, record, record.retained(2), 2, by_hand=False)
    bars = panel.bars
    assert bars.cut == (DIVERGENCE, pytest.approx(0.16)), "all but the first are equal by word errors"
    assert "Layers 0, 3 are kept (by word errors, then the divergence)" in panel.kept.text()
    bars.grab()
    for width in (bars.width(), bars.width() // 2):
        bars.resize(width, bars.height())
        words = [one for labels in items(bars, Labels) for one in labels.placed]
        (spot,) = (spot for label, spot in words if label.text.startswith("cut"))
        assert spot.center().x() == pytest.approx(bars.column(1).right()), "its words are between layers 1 and 2"


def test_keys_choose_toggle_cut_and_copy_and_a_click_toggles_the_layer_under_it(panel: LayersPanel) -> None:
    toggled, depth = QSignalSpy(panel.toggled), QSignalSpy(panel.depth_changed)
    assert panel.bars.hasFocus()
    press(panel.bars, KEY.Key_Right, KEY.Key_Space, KEY.Key_End, KEY.Key_Return)
    column = panel.bars.column(2).center().toPoint()
    QTest.mouseClick(panel.bars, Qt.MouseButton.LeftButton, pos=column)
    panel.bars.move_cursor(0)
    QTest.mousePress(panel.bars, Qt.MouseButton.LeftButton, pos=column)
    QTest.mouseRelease(panel.bars, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))  # Released elsewhere.
    assert [toggled.at(index) for index in range(toggled.count())] == [[1], [3], [2]]
    press(panel.bars, KEY.Key_Up, KEY.Key_Down)
    assert [depth.at(0), depth.at(1)] == [[3], [1]]
    press(panel.bars, KEY.Key_C, modifier=Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "layer\tstays\tword_error\tword_error low\tword_error high\tdivergence\tcosine"
    assert lines[2] == "1\tno\t0.1\t0.05\t0.2\t0.05\t0.1"
    # Layers by hand have no cut and can be given up.
    wanted = QSignalSpy(panel.can["by_importance"].triggered)
    assert not panel.by_importance.isVisible()
    panel.set_layers(4, RECORD, (1, 2, 3), 2, by_hand=True)
    assert panel.bars.cut is None and "by hand" in panel.kept.text()
    press(panel.by_importance, KEY.Key_Space)
    assert wanted.count() == 1


def test_what_cannot_be_done_says_why(panel: LayersPanel) -> None:
    hear = panel.hear[spade.NONE]
    assert hear.isEnabled() and panel.can["train"].isEnabled() and panel.can["study"].isEnabled()
    panel.set_layers(4, RECORD, range(4), 4, by_hand=False)
    assert "keep fewer layers" in hear.reason and "keep fewer layers" in panel.can["train"].reason, (
        "nothing is left out"
    )
    panel.set_layers(1, None, (0,), 1, by_hand=False)
    assert "one layer" in panel.can["study"].reason
    panel.set_layers(4, RECORD, RECORD.retained(1), 1, by_hand=False)
    assert panel.kept.text().startswith("Layer 0 is kept (by word errors), numbered as in the checkpoint")
    panel.set_layers(0, None, (), 1, by_hand=False)
    panel.set_reason("F5 mini decodes no tokens; load a speech language model to remove layers.")
    assert "decodes no tokens" in panel.state.text()
    assert not any(one.isEnabled() for one in (panel.depth_box, panel.bars))


def test_measuring_is_asked_for_and_followed(panel: LayersPanel) -> None:
    wanted, cancelled = QSignalSpy(panel.can["measure"].triggered), QSignalSpy(panel.can["cancel"].triggered)
    panel.sentences.setValue(3)
    press(panel.word_errors, KEY.Key_Space)
    press(panel.measure_button, KEY.Key_Space)
    assert wanted.count() == 1 and panel.word_errors.isChecked()
    panel.begin()
    panel.progress.show_progress(30, 120, 42.0)
    assert panel.progress.value() == 30
    press(panel.cancel_button, KEY.Key_Space)
    assert cancelled.count() == 1
    panel.end("It failed because of this.", failed=True)
    assert panel.state.text() == "It failed because of this."


def test_values_that_differ_by_orders_of_magnitude_get_axes_down_to_the_smallest(panel: LayersPanel) -> None:
    def show(measure: LayerImportance, *retained: int) -> None:
        panel.set_layers(4, replace(RECORD, measures=(measure,)), retained, len(retained), by_hand=False)

    show(RECORD.measures[2], 0, 3)
    assert not panel.logarithmic.isChecked()
    values = (300.0, 2.0, 0.004, 0.0003)
    wide = replace(RECORD.measures[1], values=values, low=(200.0, 1.0, 0.001, 0.00002), high=(400.0, 3.0, 0.01, 0.002))
    show(wide, 0, 1, 2, 3)
    assert panel.logarithmic.isChecked()
    up = next(one for one in panel.bars.lanes if one.frame.isVisible()).frame.up
    assert up.low <= 0.00002 and up.high >= 400.0
    shares = [float(up.share(np.array([value]))[0]) for value in values]
    assert shares == sorted(shares, reverse=True) and shares[-1] > 0.05, "every bar is seen"
    show(replace(wide, values=(300.0, 0.0, 0.0, 0.0)), 0, 1, 2, 3)
    assert panel.logarithmic.isChecked(), "also where the median is 0"
    panel.bars.grab()


MEASURED = ImportanceRecord("lm-mini", "f" * 64, 4, (LayerImportance(DIVERGENCE, (7.0, 0.1, 0.2, 0.3)),))


@pytest.fixture
def state(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppState:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    made = AppState(Jobs(lambda command: None))
    made.selection.model_id = "lm-mini"
    checkpoint = str(tmp_path / "model" / "model.safetensors")
    made.selection.info = replace(LANGUAGE, fingerprint="f" * 64, checkpoint=checkpoint)
    return made


@pytest.fixture
def choice(state: AppState, tmp_path: Path) -> LayerChoice:
    MEASURED.write(tmp_path / "model" / FILE)
    made = LayerChoice(state)
    state.selection.model_changed.emit()
    state.selection.set_knob(spade.NAME, "depth", 2)
    return made


def test_the_most_important_layers_stay_half_of_them_by_default(choice: LayerChoice, state: AppState) -> None:
    assert choice.record == MEASURED and choice.retained == (0, 3)
    for depth, retained in ((3, (0, 2, 3)), (9, (0, 1, 2, 3)), (1, (0,))):
        choice.set_depth(depth)
        assert choice.retained == retained
    with pytest.raises(SettingError, match="Keep at least one layer"):
        choice.toggle(0)
    state.undo_stack.undo()
    assert choice.depth == 2, "successive changes are one step back"
    state.selection.info = replace(state.selection.info, layers=24)
    state.selection.set_knob(spade.NAME, "depth", spade.TECHNIQUE.knobs[0].default)
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


def test_what_a_host_measured_is_kept_here(choice: LayerChoice, state: AppState) -> None:
    state.machine.set_line("gpu1")
    measured = replace(MEASURED, checkpoint="1" * 64)
    state.selection.info = replace(state.selection.info, fingerprint="1" * 64, checkpoint="/only/there/model.bin")
    choice.take_up(measured)
    state.selection.model_changed.emit()
    assert choice.record == measured, "after a restart, too"
    state.selection.info = replace(state.selection.info, fingerprint="2" * 64)
    choice.take_up(replace(measured, checkpoint="2" * 64))
    assert read_record([own_place("lm-mini")], "1" * 64) == measured, "another checkpoint's record stays"


def test_a_measurement_of_another_checkpoint_is_not_taken_up(choice: LayerChoice, state: AppState) -> None:
    choice.take_up(replace(MEASURED, checkpoint="0" * 64))
    assert choice.record == MEASURED
    state.selection.info = replace(state.selection.info, fingerprint="0" * 64)
    state.selection.model_changed.emit()
    assert choice.record is None and choice.retained == (0, 1, 2, 3), "nothing says which to leave out"
    state.selection.info = replace(state.selection.info, family="flow")
    state.selection.model_changed.emit()
    assert (choice.layers, choice.retained) == (0, ())


def test_a_damaged_measurement_is_said(choice: LayerChoice, state: AppState, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "model" / FILE).write_text("{")
    with qtbot.waitSignal(choice.problem) as problem:
        state.selection.model_changed.emit()
    assert FILE in problem.args[0]
