"""The Attention panel as people use it: real key presses and clicks on the real widget."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from paretone.models.base import AttentionCapture
from paretone_app.features.attention.panel import BRANCH_NAMES, AttentionPanel
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.window import MainWindow
from tests.app.acting import acts, press
from tests.app.conftest import SMALL, in_front
from tests.engine.techniques.ditreducio.observing import LAYERS, STEPS, calibrate

KEY = Qt.Key
FRAMES, PROMPT = 200, 60
PARTS = f"{SMALL} strategy attention"


@pytest.fixture
def panel(qtbot) -> AttentionPanel:
    panel = in_front(AttentionPanel(LIGHT, *acts(1)), qtbot, 1000, 480)
    panel.setFocus()
    panel.set_layout(LAYERS, STEPS)
    return panel


def capture(branches: int = 2, size: int = 100, layer: int = 2, step: int = 3) -> AttentionCapture:
    """Rows that sum to one: the first branch diagonal, the others striped."""
    query, key = np.mgrid[0:size, 0:size]
    diagonal = np.exp(-(((query - key) / 2.0) ** 2))
    striped = np.exp(2 * np.sin(key / 5.0))
    maps = np.stack([diagonal, *[striped] * (branches - 1)])
    maps = (maps / maps.sum(axis=2, keepdims=True)).astype(np.float32)
    similarities = tuple(float(np.trace(one) / np.linalg.norm(one) / np.sqrt(size)) for one in maps)
    return AttentionCapture(layer, step, FRAMES, PROMPT, maps, similarities)


def shown(panel: AttentionPanel) -> list:
    return [plot for plot in panel.plots if plot.isVisible()]


def seen(plot) -> list[tuple[float, float]]:
    """First and last key and query in view."""
    frame = plot.frame
    return [(frame.across.low, frame.across.high), (frame.up.high, frame.up.low)]


def test_a_click_or_a_key_on_a_cell_asks_for_its_attention(panel: AttentionPanel) -> None:
    wanted: list[tuple[int, int]] = []
    panel.grid.cell_activated.connect(lambda *cell: wanted.append(cell))
    QTest.mouseClick(panel.grid, Qt.MouseButton.LeftButton, pos=panel.grid.cell_rectangle(3, 4).center())
    press(panel.grid, KEY.Key_Up, KEY.Key_Left)
    assert wanted == [(3, 4)], "moving about captures nothing"
    press(panel.grid, KEY.Key_Space, KEY.Key_Home, KEY.Key_Return)
    assert wanted == [(3, 4), (2, 3), (2, 0)]


def test_similarities_fill_in_and_are_marked_once_the_cut_is_known(panel: AttentionPanel) -> None:
    record = calibrate(0.1, 0)
    half = record.similarities.copy()
    half[:, 3:] = np.nan
    panel.set_similarities(half)
    assert not panel.grid.marked.any() and panel.grid.ends == (np.nanmin(half), np.nanmax(half))
    assert panel.grid.describe(1, 4) == "Layer 2, step 5: not measured."
    panel.set_similarities(record.similarities, record.cut)
    np.testing.assert_array_equal(panel.grid.marked, record.marked)
    layer, step = (int(one) for one in np.argwhere(record.marked)[0])
    assert panel.grid.describe(layer, step).endswith("marked: tried first.")
    panel.set_similarities(None)
    assert panel.grid.layers == 0
    panel.grab()


def test_before_and_after_a_failed_capture_it_says_so(panel: AttentionPanel) -> None:
    assert "Select a cell" in panel.status.text() and not shown(panel) and not panel.levels_box.isEnabled()
    panel.say("The GPU is out of memory; choose a shorter sentence.")
    assert panel.status.text() == "The GPU is out of memory; choose a shorter sentence."
    assert panel.status.property("look") == "warning"


@pytest.mark.parametrize("branches", [1, 3, 4])
def test_branches_stand_side_by_side_under_their_names(panel: AttentionPanel, branches: int) -> None:
    panel.show_capture(capture(3))
    captured = capture(branches)
    panel.show_capture(captured)
    plots = shown(panel)
    assert len(plots) == branches
    for index, plot in enumerate(plots):
        name = BRANCH_NAMES[branches][index] if branches < 4 else f"branch {index + 1}"
        assert name in panel.titles[index].text()
        assert f"{captured.similarities[index]:.3f}" in panel.titles[index].text()
        assert name in plot.accessibleName()
        np.testing.assert_array_equal(plot.image.image, captured.maps[index])
    assert [one.geometry().left() for one in plots] == sorted(one.geometry().left() for one in plots)


def test_diagonal_or_striped_is_judged_by_the_cut(panel: AttentionPanel) -> None:
    captured = capture(2)
    panel.show_capture(captured)
    assert "striped" not in panel.titles[1].text(), "no verdict without a cut"
    cut = sum(captured.similarities) / 2
    panel.set_similarities(np.full((LAYERS, STEPS), cut), cut)
    assert "striped or spread" in panel.titles[1].text()
    assert "diagonal" in panel.titles[0].text() and "striped or spread" not in panel.titles[0].text()


def test_queries_run_down_and_keys_to_the_right(panel: AttentionPanel) -> None:
    maps = np.zeros((1, 100, 100), np.float32)
    maps[0, :, 0] = 0.01
    maps[0, 90, :] = 1.0
    panel.show_capture(AttentionCapture(0, 0, FRAMES, PROMPT, maps))
    plot = shown(panel)[0]
    # Row 90 of 100 is query frame 180 of 200, and in the lower part of the picture.
    place, upper = (plot.frame.place(100.0, query).toPoint() for query in (181.0, 20.0))
    assert place.y() > upper.y()
    picture = plot.grab().toImage()
    assert picture.pixelColor(place).lightness() < picture.pixelColor(upper).lightness()


def test_the_end_of_the_prompt_is_drawn_both_ways(panel: AttentionPanel) -> None:
    panel.show_capture(capture(2))
    for plot in shown(panel):
        assert plot.boundary == PROMPT
        lines = sorted((tuple(one.x), tuple(one.y)) for one in plot.boundary_lines.shapes)
        assert lines == [((0.0, FRAMES), (PROMPT, PROMPT)), ((PROMPT, PROMPT), (0.0, FRAMES))]
    press(panel.seconds_box, KEY.Key_Space)
    for plot in shown(panel):
        assert plot.boundary == pytest.approx(PROMPT * 256 / 24000)
        assert seen(plot)[0][1] == pytest.approx(FRAMES * 256 / 24000)
        assert plot.frame.bottom.dimension.title == "Key, s"
    panel.show_capture(replace(capture(2), frame_seconds=0.02))
    assert shown(panel)[0].boundary == pytest.approx(PROMPT * 0.02)
    assert seen(shown(panel)[0])[0][1] == pytest.approx(FRAMES * 0.02)


def test_zoom_and_pan_are_shared_by_the_branches_and_work_from_the_keyboard(panel: AttentionPanel) -> None:
    panel.show_capture(capture(2))
    one, other = shown(panel)
    whole = seen(one)
    assert whole == [(0.0, FRAMES), (0.0, FRAMES)]
    press(other, KEY.Key_Plus)
    zoomed = seen(one)
    assert zoomed[0][1] - zoomed[0][0] == pytest.approx(zoomed[1][1] - zoomed[1][0])
    assert zoomed[0][1] - zoomed[0][0] < 0.8 * FRAMES
    press(one, KEY.Key_Right, KEY.Key_Down)
    assert seen(one)[0][0] > zoomed[0][0] and seen(one)[1][0] > zoomed[1][0] and seen(other) == seen(one)
    panel.show_capture(capture(2, layer=4))
    assert seen(shown(panel)[0]) != whole, "another cell of the same speech keeps the zoom"
    press(one, KEY.Key_Minus, KEY.Key_0)
    assert seen(one) == seen(other) == whole


def test_the_mouse_moves_the_map_and_reads_it(panel: AttentionPanel) -> None:
    panel.show_capture(capture(2))
    one, other = shown(panel)
    place = one.frame.place(51.0, 51.0)
    weight = capture(2).maps[0][25, 25]
    assert one.tip_at(place)[0] == f"Query 51, key 51 (frame): {weight:.3g}"
    assert one.tip_at(QPointF(0, 0)) is None
    press(one, KEY.Key_Plus)
    before, middle = seen(one), one.frame.area.center().toPoint()
    QTest.mousePress(one, Qt.MouseButton.LeftButton, pos=middle)
    QTest.mouseMove(one, middle + QPoint(-30, -20))
    QTest.mouseRelease(one, Qt.MouseButton.LeftButton, pos=middle + QPoint(-30, -20))
    assert seen(one)[0][0] > before[0][0] and seen(one)[1][0] > before[1][0], "the map goes with the mouse"
    assert seen(other) == seen(one)
    rows = [line.split("\t") for line in one.as_text().splitlines()]
    assert np.array([row[1:] for row in rows[1:]], float) == pytest.approx(capture(2).maps[0], rel=1e-3, abs=1e-9)


def test_percentiles_and_the_logarithm_set_the_colours(panel: AttentionPanel) -> None:
    captured = capture(2)
    panel.show_capture(captured)
    image = shown(panel)[0].image
    assert image.levels.tolist() == pytest.approx([0, np.percentile(captured.maps, 99)])
    panel.levels_box.setFocus()
    press(panel.levels_box, KEY.Key_Home)
    assert image.levels.tolist() == pytest.approx([0, captured.maps.max()])
    press(panel.log_box, KEY.Key_Space)
    high = float(np.log10(captured.maps.max()))
    assert image.levels.tolist() == pytest.approx([high - 4, high])
    assert image.image.min() == pytest.approx(high - 4, abs=1e-4), "nothing below the scale, no infinities"
    assert np.isfinite(image.image).all()


def test_the_captured_cell_is_ringed_and_another_model_forgets_it(panel: AttentionPanel) -> None:
    panel.show_capture(capture(2))
    assert panel.grid.captured == (2, 3)
    assert "Layer 3, step 4: 200 frames, drawn as 100 × 100" in panel.status.text()
    panel.set_layout(2, 3)
    panel.grab()
    panel.set_layout(LAYERS, 2)
    panel.grab()  # It has the layer, but not the step.
    panel.clear_capture()
    assert not shown(panel) and "Select a cell" in panel.status.text()


def test_a_captured_map_does_not_outlive_its_model(window: MainWindow, qtbot: QtBot) -> None:
    state, attention = window.state, window.panels["attention"]
    window.features["attention"].capture(0, 1)
    qtbot.waitUntil(lambda: attention.grid.captured == (0, 1))
    state.loading.load_model(state.selection.model_id)
    assert attention.grid.captured is None and "Select a cell" in attention.status.text()
    qtbot.waitUntil(lambda: state.selection.ready and not window.jobs.busy)
