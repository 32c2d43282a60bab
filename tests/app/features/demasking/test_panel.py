"""The Demasking panel as people use it: real key presses and clicks on the real widgets."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtTest import QSignalSpy, QTest
from pytestqt.qtbot import QtBot

from paretone.sampling.demasking_schedule import Block
from paretone.setting.setting import Setting
from paretone.setting.take import DemaskedPassage, DemaskingTrace, Take, Trace
from paretone_app.features.demasking.panel import DemaskingPanel, committed
from paretone_app.shell.colours import DARK, LIGHT
from paretone_app.shell.workspaces import recolour
from tests.app.acting import acts, press
from tests.app.conftest import in_front

KEY = Qt.Key
CODEBOOKS, FRAMES, STEPS = 3, 20, 6
MASK = 64


def passage(start: float = 0.0, steps: int = STEPS, frames: int = FRAMES) -> DemaskedPassage:
    """Codebook by codebook, two steps for each; the probability falls from frame to frame."""
    order = np.array([[2 * codebook + frame % 2 for frame in range(frames)] for codebook in range(CODEBOOKS)], np.int16)
    codes = np.arange(CODEBOOKS * frames, dtype=np.int32).reshape(CODEBOOKS, frames) % MASK
    probability = np.tile(np.linspace(1, 0, frames, dtype=np.float32), (CODEBOOKS, 1))
    return DemaskedPassage(codes, order, probability, steps, start, (Block(0, 12, 3), Block(12, frames, 3)))


def take(name: str, *passages: DemaskedPassage) -> Take:
    trace = Trace(demasking=DemaskingTrace(0.04, MASK, passages) if passages else None)
    return Take(name, "2026", "A text.", "anna", Setting("small"), 24000, np.zeros(24000), trace=trace, label=name)


@pytest.fixture
def panel(qtbot: QtBot) -> DemaskingPanel:
    made = DemaskingPanel(LIGHT, *acts(1))
    made.set_takes(take("Baseline", passage()), take("Blockwise", passage(), passage(0.8)))
    in_front(made, qtbot, 900, 500)
    made.setFocus()
    return made


def test_the_last_step_of_the_new_take_is_shown(panel: DemaskingPanel) -> None:
    assert (panel.side, panel.step) == ("B", STEPS - 1)
    assert panel.headline.text() == "Blockwise: 3 codebooks × 20 frames in 6 steps (3 + 3), in 2 blocks"
    assert panel.count.text() == "Step 6 of 6: 10 now, 60 of 60 (100 %)"
    assert committed(panel.passage) == (10,) * STEPS
    assert [panel.passages.itemText(index) for index in range(2)] == ["Passage 1 of 2", "Passage 2 of 2"]
    panel.show_side("A")
    assert panel.passages.isHidden(), "there is one passage only"


def test_steps_are_gone_through_by_slider_keys_and_bars(panel: DemaskingPanel) -> None:
    panel.slider.setValue(2)
    assert panel.step == 1 and panel.count.text() == "Step 2 of 6: 10 now, 20 of 60 (33 %)"
    for key, step in ((KEY.Key_PageUp, 0), (KEY.Key_PageUp, -1), (KEY.Key_PageUp, -1), (KEY.Key_PageDown, 0)):
        press(panel.grid, key)
        assert panel.step == step == panel.slider.value() - 1
        assert step == 0 or "0 now, 0 of 60" in panel.count.text()
    bars = panel.bars
    QTest.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(round(bars.width() * 4.5 / STEPS), 5))
    assert panel.step == 4


def test_it_plays_to_the_end(panel: DemaskingPanel, qtbot: QtBot) -> None:
    panel.play_button.click()
    assert panel.playing and panel.step == -1, "from the beginning, as the last step was shown"
    qtbot.waitUntil(lambda: not panel.playing)
    assert panel.step == STEPS - 1 and panel.play_button.text() == "P&lay"
    panel.go_to(2)
    panel.play_button.click()
    assert panel.step == 2 and panel.playing, "from where it was"
    panel.play_button.click()
    assert not panel.playing


def test_cells_say_what_became_of_them_and_are_copied_as_text(panel: DemaskingPanel) -> None:
    panel.go_to(2)
    grid = panel.grid
    assert "(frame 6): code 5, committed with probability 0.74 at step 2 of 6" in grid.describe(0, 5)
    assert grid.describe(1, 0).endswith("at step 3 of 6, just now.")
    assert "still masked; code 40 comes with probability 1.00 at step 5 of 6" in grid.describe(2, 0)
    for key, at in ((KEY.Key_Right, (0, 1)), (KEY.Key_Up, (1, 1)), (KEY.Key_End, (1, 19)), (KEY.Key_Down, (0, 19))):
        press(grid, key)
        assert grid.cursor_cell == at
    assert panel.reading.text().startswith("Codebook 1, 0.76 s (frame 20): code 19, committed")
    press(grid, KEY.Key_Home)
    assert grid.cursor_cell == (0, 0)
    press(grid, KEY.Key_C, modifier=Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 1 + CODEBOOKS * FRAMES
    assert lines[1].split("\t") == ["1", "1", "0.000", "0", "1", "1.0000"]


def test_a_click_chooses_a_cell_and_space_hears_from_it(panel: DemaskingPanel) -> None:
    heard = QSignalSpy(panel.hear_wanted)
    place = panel.grid.cell(2, 10).center().toPoint()
    QTest.mouseClick(panel.grid, Qt.MouseButton.LeftButton, pos=place)
    assert panel.grid.cursor_cell == (2, 10)
    press(panel.grid, KEY.Key_Space)
    panel.passages.setCurrentIndex(1)
    panel.grid.move_cursor(0, 5)
    press(panel.grid, KEY.Key_Space)
    assert [heard.at(index) for index in range(2)] == [["B", pytest.approx(0.4)], ["B", pytest.approx(1.0)]]


def test_the_canvas_is_drawn_as_it_stood(panel: DemaskingPanel) -> None:
    panel.show_side("A")
    panel.go_to(2)
    panel.grid.clearFocus()
    image = panel.grid.grab().toImage()

    def colour(codebook: int, frame: int) -> str:
        return image.pixelColor(panel.grid.cell(codebook, frame).center().toPoint()).name()

    assert colour(2, 4) == LIGHT.raised, "masked"
    assert colour(1, 4) == LIGHT.good, "committed at this step"
    strong, faint = QColor(colour(0, 2)), QColor(colour(0, 18))
    assert strong.lightness() < faint.lightness(), "the less probable, the fainter"
    recolour(panel, DARK)
    image = panel.grid.grab().toImage()
    assert colour(2, 4) == DARK.raised and colour(1, 4) == DARK.good


def test_what_is_heard_is_followed(panel: DemaskingPanel) -> None:
    for seconds, passage, frame in ((0.5, 0, 12.5), (1.0, 1, 5.0)):
        panel.set_position("B", seconds)
        assert panel.passages.currentIndex() == passage and panel.grid.position == pytest.approx(frame)
    for nothing in (("A", 1.0), ("B", None)):
        panel.set_position(*nothing)
        assert panel.grid.position is None


def test_the_canvas_at_a_step_is_asked_for(panel: DemaskingPanel) -> None:
    panel.passages.setCurrentIndex(1)
    panel.go_to(3)
    assert (panel.side, panel.passages.currentIndex(), panel.step) == ("B", 1, 3) and panel.partial_button.isEnabled()
    panel.go_to(-1)
    assert not panel.partial_button.isEnabled() and "before the first step" in panel.partial_button.toolTip()
    panel.go_to(3)
    assert panel.partial_button.isEnabled()


def test_the_canvas_is_drawn_while_a_take_is_made(panel: DemaskingPanel) -> None:
    half = passage(steps=3)
    half.order[:, 10:] = -1
    panel.show_side("B")
    panel.show_coming("A", Trace(demasking=DemaskingTrace(0.04, MASK, (half,))))
    assert panel.side == "A" and panel.passage is half
    assert panel.headline.text().startswith("Take A, streaming: 3 codebooks × 20 frames in 3 steps")
    assert sum(committed(half)) == 30 and "(50 %)" not in panel.headline.text()
    assert not panel.partial_button.isEnabled() and panel.partial_button.toolTip() == "Wait for the take."
    panel.set_position("A", 0.2)
    assert panel.grid.position == pytest.approx(5)
    panel.show_coming("A", Trace(demasking=DemaskingTrace(0.04, MASK, (passage(), passage(0.8)))))
    panel.set_position("A", 0.9)
    assert panel.passages.currentIndex() == 1, "the passage that is heard"
    panel.show_coming("", Trace())
    assert panel.headline.text().startswith("Baseline: ") and panel.partial_button.isEnabled()
