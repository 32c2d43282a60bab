"""The Strategy panel as people use it: real keys and clicks on the real widget. Calibrations outlive the window."""

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QGuiApplication, QUndoStack
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from paretone.errors import ProfileError
from paretone.models.base import OperationCounts
from paretone.models.catalogue import entry
from paretone.sampling.actions import SkipAction
from paretone.techniques.ditreducio.record import CALIBRATION, END, Trial
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.wording import percent
from paretone_app.features.strategy.grid import FIRST_STEP_REASON, NAMES, UNTRIED, action_colours
from paretone_app.features.strategy.panel import ONE_BRANCH_REASON, StrategyPanel
from paretone_app.features.strategy.state import StrategyState, read_record
from paretone_app.plotting.cell_grid import distinct
from paretone_app.shell.colours import DARK, LIGHT, Colours
from paretone_app.shell.workspaces import recolour
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs
from tests.app import records
from tests.app.acting import NamedActs, press
from tests.app.conftest import in_front
from tests.app.contrast import contrast, luminance
from tests.app.presenters import INFO
from tests.engine.techniques.ditreducio.observing import LAYERS, STEPS, calibrate, compatibility

N, T, B = SkipAction.NONE, SkipAction.TS, SkipAction.BS
OPERATIONS = OperationCounts(attention=3.0, feed_forward=5.0, fixed=7.0, layers=LAYERS, branches=2)
KEY, SHIFT, CONTROL = Qt.Key, Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier


def open_panel(qtbot, colours: Colours = LIGHT) -> StrategyPanel:
    panel = in_front(StrategyPanel(colours, QUndoStack(), NamedActs()), qtbot, 700, 480)
    panel.setFocus()
    return panel


def differing(panel: StrategyPanel) -> int:
    return sum("; " in panel.grid.describe(*cell) for cell in itertools.product(range(LAYERS), range(STEPS)))


@pytest.fixture
def empty(qtbot) -> Iterator[StrategyPanel]:
    return open_panel(qtbot)


@pytest.fixture
def panel(empty: StrategyPanel) -> StrategyPanel:
    empty.set_table(StrategyTable.computing(compatibility(), LAYERS))
    return empty


@pytest.fixture
def edits(panel: StrategyPanel) -> list[StrategyTable]:
    seen: list[StrategyTable] = []
    panel.table_edited.connect(seen.append)
    return seen


def click(panel: StrategyPanel, layer: int, step: int, modifier=Qt.KeyboardModifier.NoModifier) -> None:
    place = panel.grid.cell_rectangle(layer, step).center()
    QTest.mouseClick(panel.grid, Qt.MouseButton.LeftButton, modifier, place)


# --- Editing ---------------------------------------------------------------------------------------------------------
def test_clicks_cycle_a_cell_through_its_three_actions(panel: StrategyPanel, edits: list[StrategyTable]) -> None:
    for expected in (T, B, N):
        click(panel, 3, 4)
        assert panel.table.actions[3][4] is expected and edits[-1] is panel.table
        assert panel.table.origin == "nothing skipped" + (", edited by hand" if expected is not N else "")
    assert len(edits) == 3


def test_keys_move_a_cursor_and_cycle_its_cell(panel: StrategyPanel) -> None:
    cells: list[tuple[int, int]] = []
    panel.grid.cursor_moved.connect(lambda layer, step: cells.append((layer, step)))
    press(panel.grid, KEY.Key_Down, KEY.Key_Right, KEY.Key_Right, KEY.Key_Space)
    assert cells == [(1, 0), (1, 1), (1, 2)] and panel.table.actions[1][2] is T
    press(panel.grid, KEY.Key_Return)
    assert panel.table.actions[1][2] is B and panel.grid.cursor_cell == (1, 2)
    assert panel.grid.accessibleDescription() == "Layer 2, step 3: branch skip."
    press(panel.grid, KEY.Key_End, KEY.Key_Right, KEY.Key_PageUp, KEY.Key_Up)
    assert panel.grid.cursor_cell == (0, STEPS - 1), "it stops at the edges"
    press(panel.grid, KEY.Key_Home, KEY.Key_PageDown)
    assert panel.grid.cursor_cell == (LAYERS - 1, 0)


def test_letters_set_a_cell_directly(panel: StrategyPanel, edits: list[StrategyTable]) -> None:
    press(panel.grid, KEY.Key_Right)
    for key, action in ((KEY.Key_B, B), (KEY.Key_T, T), (KEY.Key_C, N)):
        press(panel.grid, key)
        assert panel.table.actions[0][1] is action
    press(panel.grid, KEY.Key_C)
    assert len(edits) == 3, "setting what is set already is no edit"


def test_a_range_is_one_edit_and_leaves_the_first_step_alone(panel: StrategyPanel, edits: list[StrategyTable]) -> None:
    press(panel.grid, KEY.Key_Down)
    press(panel.grid, KEY.Key_End, KEY.Key_Down, modifier=SHIFT)
    press(panel.grid, KEY.Key_T)
    assert [panel.table.count(one) for one in SkipAction] == [LAYERS * STEPS - 2 * (STEPS - 1), 2 * (STEPS - 1), 0]
    assert panel.table.actions[0] == (N,) * STEPS
    assert panel.table.actions[1] == panel.table.actions[2] == (N, *[T] * (STEPS - 1))
    assert len(edits) == panel.undo_stack.count() == 1


def test_a_range_drawn_with_the_mouse_is_not_edited_until_a_letter_comes(panel: StrategyPanel, edits: list) -> None:
    first, last = (panel.grid.cell_rectangle(*cell).center() for cell in ((1, 2), (2, 4)))
    QTest.mousePress(panel.grid, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, first)
    QTest.mouseMove(panel.grid, last)
    QTest.mouseRelease(panel.grid, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, last)
    assert not edits and panel.grid.selected() == [(layer, step) for layer in (1, 2) for step in (2, 3, 4)]
    press(panel.grid, KEY.Key_B)
    assert panel.table.count(B) == 6
    click(panel, 4, 5, SHIFT)
    assert panel.grid.selected()[-1] == (4, 5) and len(edits) == 1


def test_the_first_step_is_locked_and_says_why(panel: StrategyPanel, edits: list[StrategyTable]) -> None:
    click(panel, 2, 0)
    press(panel.grid, KEY.Key_T, KEY.Key_B, KEY.Key_Space)
    assert not edits and panel.undo_stack.count() == 0
    assert FIRST_STEP_REASON in panel.grid.describe(2, 0) and FIRST_STEP_REASON in panel.cell.text()
    assert FIRST_STEP_REASON not in panel.grid.describe(2, 1)


def test_undo_and_redo_restore_tables_and_report_them(panel: StrategyPanel, edits: list[StrategyTable]) -> None:
    start, stack = panel.table, panel.undo_stack
    click(panel, 1, 1)
    click(panel, 2, 2)
    once, twice = edits
    stack.undo()
    stack.undo()
    assert panel.table == start and not stack.canUndo()
    stack.redo()
    stack.redo()
    assert panel.table == twice and edits == [once, twice, once, start, once, twice]
    assert stack.undoText() == "set layer 3, step 3 to temporal skip"
    panel.set_table(calibrate(0.1).table)
    stack.undo()
    assert panel.table == once, "a table from elsewhere leaves the edits"


def test_without_a_table_nothing_and_without_guidance_no_branch_can_be_edited(empty: StrategyPanel) -> None:
    press(empty.grid, KEY.Key_Down, KEY.Key_Space, KEY.Key_T)
    QTest.mouseClick(empty.grid, Qt.MouseButton.LeftButton, pos=QPoint(100, 100))
    assert empty.table is None and empty.undo_stack.count() == 0
    assert "Calibrate" in empty.grid.accessibleDescription()
    empty.set_table(StrategyTable.computing(compatibility(guidance=0.0), LAYERS))
    click(empty, 1, 1)
    assert empty.table.actions[1][1] is T
    click(empty, 1, 1)
    assert empty.table.actions[1][1] is N
    press(empty.grid, KEY.Key_B)
    assert empty.table.actions[1][1] is N and empty.cell.text() == ONE_BRANCH_REASON


# --- Figures ---------------------------------------------------------------------------------------------------------
def test_figures_follow_the_table_and_the_operations(panel: StrategyPanel) -> None:
    assert panel.figures.texts(0) == ["This table", "30", "0", "0", "0.0 %", "–", "–"]
    panel.set_operations(OperationCounts(3.0, 5.0, 7.0, LAYERS + 1, 2))
    assert panel.figures.texts(0)[5:] == ["–", "–"], "of another model"
    panel.set_operations(OPERATIONS)
    assert panel.figures.texts(0)[5:] == ["100.0 %", "1.00×"]
    panel.set_operations(OPERATIONS, "Flow operations")
    labels = panel.figures.findChildren(QLabel)
    assert "Flow operations" in [one.text() for one in labels]
    assert "This table, Flow operations: 100.0 %" in [one.accessibleName() for one in labels]
    panel.set_operations(OPERATIONS)
    press(panel.grid, KEY.Key_Right)
    press(panel.grid, KEY.Key_PageDown, KEY.Key_End, modifier=SHIFT)
    press(panel.grid, KEY.Key_T)
    ratio = panel.table.ops_ratio(OPERATIONS)
    assert ratio < 0.4
    shares = percent(25 / 30, 1), percent(ratio, 1), f"{1 / ratio:.2f}×"
    assert panel.figures.texts(0) == ["This table", "5", "25", "0", *shares]


# --- Two tables ------------------------------------------------------------------------------------------------------
def test_the_difference_view_counts_and_describes_what_differs(panel: StrategyPanel) -> None:
    assert not panel.difference_box.isEnabled()
    other = calibrate(0.1).table
    panel.set_reference(other)
    differ = int((np.array(other.actions) != N).sum())
    assert panel.figures.texts(1)[0] == f"Calibrated table: {differ} cells differ"
    assert panel.figures.texts(1)[4] == f"{percent(other.skipped_share, 1)}"
    assert differing(panel) == 0, "not shown before it is asked for"
    press(panel.difference_box, KEY.Key_Space)
    assert differing(panel) == differ
    layer, step = (int(one) for one in np.argwhere(np.array(other.actions) == T)[0])
    assert "; calibrated table: temporal skip" in panel.grid.describe(layer, step)
    panel.grid.move_cursor(layer, step)
    press(panel.grid, KEY.Key_T)
    assert differing(panel) == differ - 1
    panel.set_reference(panel.table, "Table at δ")
    assert panel.figures.texts(1)[0] == "Table at δ: identical"
    panel.set_reference(None)
    assert differing(panel) == 0 and panel.figures.texts(1)[0] == ""


def test_tables_of_another_shape_are_counted_but_not_compared(panel: StrategyPanel) -> None:
    panel.set_reference(calibrate(0.1).table)
    panel.difference_box.setChecked(True)
    other = calibrate(0.1, layers=3).table
    panel.set_reference(other)
    assert differing(panel) == 0 and not panel.difference_box.isEnabled()
    assert panel.figures.texts(1)[0] == f"Calibrated table: 3 layers × {STEPS} steps"
    panel.set_table(other)
    assert panel.difference_box.isEnabled()
    panel.set_table(None)
    assert panel.grid.layers == 3, "without a table in use, the other one can be looked at"
    assert not panel.editable and "not in use" in panel.headline.text()
    panel.set_reference(None)
    panel.grab()
    assert panel.grid.layers == 0


# --- A calibration at work -------------------------------------------------------------------------------------------
def test_a_calibration_for_the_end_has_one_phase_and_takes_cells_back(panel: StrategyPanel) -> None:
    panel.begin_calibration(LAYERS, STEPS, None, True)
    assert panel.headline.text().startswith("End of the trajectory: begins")
    panel.add_trials([Trial(END, 2, 1, SkipAction.TS, 0.01, True), Trial(END, 3, 1, SkipAction.BS, 0.02, True)])
    assert (panel.grid.value(1, 2), panel.grid.value(1, 3)) == (SkipAction.TS, SkipAction.BS)
    panel.add_trials([Trial(END, 2, 1, SkipAction.NONE, 0.015, True)])
    assert panel.grid.value(1, 2) == SkipAction.NONE and "limit" not in panel.cell.text()


def test_a_calibration_fills_the_table_in_trial_by_trial(panel: StrategyPanel, edits: list[StrategyTable]) -> None:
    record = calibrate(0.1, 4)
    panel.begin_calibration(LAYERS, STEPS)
    assert "Pass 1 of 3, check" in panel.headline.text()
    assert {panel.grid.value(0, 0), panel.grid.value(0, 1)} == {N, UNTRIED}
    measured = np.full((LAYERS, STEPS), np.nan)
    measured[:, :2] = 0.5
    panel.add_similarities(measured)
    assert f"{2 * LAYERS} of {LAYERS * STEPS} cells" in panel.headline.text()
    seen = np.full((LAYERS, STEPS), UNTRIED)
    seen[:, 0] = N
    phases = []
    for trial in record.trials:
        panel.add_trials([trial])
        seen[trial.layer, trial.step] = trial.action if trial.accepted else N
        assert panel.grid.lit == (trial.layer, trial.step)
        shown = [[panel.grid.value(layer, step) for step in range(STEPS)] for layer in range(LAYERS)]
        np.testing.assert_array_equal(shown, seen)
        if panel.headline.text().split(",")[0] not in phases:
            phases.append(panel.headline.text().split(",")[0])
    assert phases == ["Pass 2 of 3", "Pass 3 of 3"]
    assert f"{len(record.trials)} trials" in panel.headline.text()
    np.testing.assert_array_equal(shown, np.array(record.table.actions))
    press(panel.grid, KEY.Key_T, KEY.Key_Space)
    assert not edits, "a running calibration cannot be edited"
    panel.end_calibration()
    panel.set_table(record.table)
    assert panel.grid.lit is None and record.table.origin in panel.headline.text()


def test_a_trial_is_told_with_the_limit_of_its_own_layer(panel: StrategyPanel) -> None:
    panel.begin_calibration(LAYERS, STEPS, 0.1)
    limit = 2 / LAYERS * 0.1
    panel.add_trials([Trial(CALIBRATION, 3, 1, SkipAction.TS, 0.073, False)])
    said = f"rejected, error 0.073, not below the layer's limit {limit:.3g} (2/{LAYERS} of δ = 0.1)"
    assert panel.cell.text() == f"Layer 2, step 4: {NAMES[SkipAction.TS]} {said}"
    panel.add_trials([Trial(CALIBRATION, 3, LAYERS - 1, SkipAction.TS, 0.073, True)])
    assert panel.cell.text().endswith(f"below the layer's limit 0.1 ({LAYERS}/{LAYERS} of δ = 0.1)")


def test_a_cancelled_calibration_leaves_the_table_as_it_was(panel: StrategyPanel) -> None:
    click(panel, 1, 1)
    before, record = panel.table, calibrate(0.2, 5)
    panel.begin_calibration(LAYERS, STEPS)
    panel.add_trials(list(record.trials))
    assert panel.figures.texts(0)[1:4] == [str(record.table.count(action)) for action in SkipAction], "all at once"
    panel.begin_calibration(LAYERS + 2, STEPS + 3)
    panel.add_trials(list(calibrate(0.1).trials[:4]))
    panel.end_calibration()
    panel.add_trials(list(calibrate(0.1).trials))
    assert panel.table == before and panel.undo_stack.canUndo(), "late trials are ignored, too"
    assert (panel.grid.layers, panel.grid.steps) == (LAYERS, STEPS)


# --- Seeing and reading ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_cells_have_the_colours_of_their_actions_told_apart_in_grey(qtbot, colours: Colours) -> None:
    panel = open_panel(qtbot, DARK if colours is LIGHT else LIGHT)
    panel.set_table(StrategyTable(compatibility(), tuple((N, T, B, N, N, N) for _ in range(LAYERS))))
    recolour(panel, colours)
    fills, picture = action_colours(colours), panel.grid.grab().toImage()
    ratio = picture.devicePixelRatio()
    for step, action in ((1, T), (2, B), (3, N)):
        corner = panel.grid.cell_rectangle(2, step).topLeft() + QPoint(3, 3)
        seen = picture.pixelColor(round(corner.x() * ratio), round(corner.y() * ratio))
        assert seen == QColor(fills[action][0])
    levels = sorted(luminance(fill) for fill, _ in fills.values())
    assert all((b + 0.05) / (a + 0.05) > 1.5 for a, b in itertools.pairwise(levels))
    assert all(contrast(fill, ink) >= 4.5 for fill, ink in fills.values())


def test_the_table_as_text_says_the_same_and_can_be_copied(panel: StrategyPanel) -> None:
    panel.grid.set_times((0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0))
    click(panel, 1, 2)
    press(panel.grid, KEY.Key_C, modifier=CONTROL)
    copied = QGuiApplication.clipboard().text()
    lines = [line.split("\t") for line in copied.split("\n")]
    assert lines[0] == ["layer", *(f"step {one + 1}" for one in range(STEPS))]
    assert lines[1] == ["t", "0", "0.1", "0.25", "0.5", "0.75", "0.9"]
    assert [[SkipAction[name] for name in line[1:]] for line in lines[2:]] == [list(row) for row in panel.table.actions]
    press(panel.text_box, KEY.Key_Space)
    assert panel.text_view.isVisible()
    model = panel.text_view.model()
    assert (model.rowCount(), model.columnCount()) == (LAYERS, STEPS)
    index = model.index(1, 2)
    assert index.data() == "TS"
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "Layer 2, step 3 (t = 0.250): temporal skip."
    QGuiApplication.clipboard().clear()
    press(panel.text_view, KEY.Key_C, modifier=CONTROL)
    assert QGuiApplication.clipboard().text() == copied
    panel.undo_stack.undo()
    assert model.index(1, 2).data() == "NONE"


def test_times_of_another_grid_are_not_shown_and_no_two_steps_have_the_same(panel: StrategyPanel) -> None:
    panel.grid.set_times((0.0, 0.5, 1.0))
    assert panel.grid.times == ()
    panel.grid.set_times(tuple(np.linspace(0, 1, STEPS + 1)))
    assert len(panel.grid.times) == STEPS
    panel.grid.set_times((0.0, 0.1, 0.2))
    panel.set_table(calibrate(0.1, steps=3).table)
    assert panel.grid.times == (0.0, 0.1, 0.2), "times may come before the table"
    assert distinct((0.0, 0.5, 1.0)) == ["0.00", "0.50", "1.00"]
    assert distinct((0.0, 0.0012, 0.0048, 0.0107)) == ["0.000", "0.001", "0.005", "0.011"]


# --- Calibrations on the disk ----------------------------------------------------------------------------------------
def store(folder: Path) -> StrategyState:
    return StrategyState(AppState(Jobs([].append)), folder)


def test_the_store_finds_the_newest_that_fits_as_it_was(tmp_path: Path) -> None:
    kept = store(tmp_path)
    older = records.record(0.1, "2026-11-20T10:00:00+00:00")
    newer = records.record(0.2, "2026-11-21T10:00:00+00:00")
    other = records.record(0.1, "2026-11-22T10:00:00+00:00", model="F5TTS_Base")
    for one in (newer, other, older):
        kept.keep(one)
    state = AppState(Jobs([].append))
    again = StrategyState(state, tmp_path)
    assert len(again.kept) == 3
    found = again.chosen(records.compatibility())
    assert found == newer and found.derive(0.2) == newer.derive(0.2)
    np.testing.assert_array_equal(found.similarities, newer.similarities)
    assert again.chosen(records.compatibility(steps=8)) is None
    assert again.chosen(records.compatibility(model="F5TTS_Base")) == other
    state.selection.set_knob("ditreducio", "metric", "relative")
    assert again.chosen(records.compatibility()) is None


@pytest.mark.parametrize(
    ("content", "says"), [("{", "cannot be read"), ('{"schema": 99}', "schema 99"), ('{"schema": 2}', "table")]
)
def test_a_damaged_file_is_named_and_passed_over(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "damaged.json").write_text(content)
    with pytest.raises(ProfileError, match=says):
        read_record(tmp_path / "damaged.json")
    read = store(tmp_path)
    assert read.kept == [] and "damaged.json" in read.problems[0]


def test_what_cannot_be_written_is_kept_in_memory(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("not a folder")
    unkept = store(blocked)
    unkept.keep(records.record())
    assert "could not be written" in unkept.problems[0] and unkept.chosen(records.compatibility()) == records.record()


def test_calibrations_are_read_and_give_tables(tmp_path: Path) -> None:
    written = Path(__file__).resolve().parents[3] / "first_edition" / "calibrations"
    read = store(shutil.copytree(written, tmp_path / "calibrations"))
    assert not read.problems
    (record,) = read.kept
    skipped = [record.derive(threshold).table.skipped_share for threshold in (0.0, 0.1, 0.4)]
    assert skipped == sorted(skipped) and skipped[0] < skipped[-1]


def test_a_table_of_a_flow_after_a_language_model_belongs_to_that_flow(tmp_path: Path) -> None:
    state = AppState(Jobs([].append))
    cosyvoice = entry("Fun-CosyVoice3-0.5B")
    flow = replace(cosyvoice.mel_flow, layers=22, fingerprint="f" * 64)
    told = {"id": cosyvoice.id, "family": "language", "knobs": cosyvoice.options, "layers": 24}
    state.selection.choose_model(cosyvoice.id, "", "", "cpu", replace(INFO, **told, mel_flow=flow))
    kept = StrategyState(state, tmp_path)
    wanted = kept.compatibility()
    assert wanted is not None and (wanted.fingerprint, wanted.steps) == ("f" * 64, 10)
    kept.skip_nothing()
    assert (kept.table.layers, kept.table.steps) == (22, 10)
    state.selection.set_option("flow_steps", 6)
    assert kept.compatibility().steps == 6
