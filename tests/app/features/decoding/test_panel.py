"""The Decoding panel as people use it: real key presses and clicks on the real widget."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QSignalSpy, QTest
from pytestqt.qtbot import QtBot

from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements, Take, Trace
from paretone_app.features.decoding.panel import DecodingPanel
from paretone_app.features.decoding.token_strip import outcome_colours
from paretone_app.shell.colours import DARK, LIGHT
from paretone_app.shell.workspaces import recolour
from tests.app.acting import acts, press
from tests.app.conftest import in_front
from tests.app.contrast import contrast
from tests.engine.measure.test_decoding import PLAIN, TRACE

KEY = Qt.Key
SSD = Setting("lm-mini", techniques=(UsedTechnique("speculative"),))


def take(name: str, setting: Setting = Setting("lm-mini"), **trace: object) -> Take:
    samples = np.zeros(48000, np.float32)
    return Take(name, "2026-11-21", "One.", "anna", setting, 24000, samples, trace=Trace(**trace), label=name)


@pytest.fixture
def panel(qtbot: QtBot) -> DecodingPanel:
    made = DecodingPanel(LIGHT, *acts(1))
    made.set_takes(take("Baseline", decoding=PLAIN), take("SSD", SSD, decoding=TRACE))
    in_front(made, qtbot, 900, 480)
    made.setFocus()
    return made


def test_figures_of_drafting_against_the_baseline(panel: DecodingPanel) -> None:
    assert panel.side == "B"
    assert panel.headline.text().startswith("SSD: 8 tokens in 4 passes of the target. 1 of 2 passages did not stop")
    shown = {name: label.text() for name, label in panel.values.items()}
    assert " ".join(shown.values()) == "2.25 2.75 0.25 1.25× 1.16× 11 % 1.29×"
    assert "rejected&nbsp;drafts&nbsp;5" in panel.legend.text()
    panel.show_side("A")
    assert panel.values["predicted"].text() == "–" and panel.values["prompt"].text() == "20 %"
    assert "decoded&nbsp;8" in panel.legend.text()


def test_what_differs_by_more_than_the_draft_is_no_baseline(panel: DecodingPanel) -> None:
    drafted, plain = take("SSD", SSD, decoding=TRACE), take("Baseline", decoding=PLAIN)
    student = UsedTechnique("spade")
    by_student = replace(drafted, setting=SSD.with_technique(student))
    others = replace(plain, text="Two."), replace(plain, voice="bella")
    for baseline, shown in (*((one, drafted) for one in others), (plain, by_student)):
        panel.set_takes(baseline, shown)
        panel.show_side("B")
        assert panel.values["measured"].text() == "– (no baseline)" and panel.values["cost"].text() == "–"
    busy = Measurements(seconds=1.0, other_seconds=1.0, cores=1)
    panel.set_takes(replace(plain, setting=plain.setting.with_technique(student), measurements=busy), by_student)
    panel.show_side("B")
    assert panel.values["measured"].text() == "1.29× (busy)"


def test_keys_go_along_the_tokens_and_hear_from_there_as_a_click_does(panel: DecodingPanel) -> None:
    heard = QSignalSpy(panel.hear_wanted)
    assert panel.strip.hasFocus()
    press(panel.strip, KEY.Key_Right, KEY.Key_PageDown)
    assert panel.strip.cursor_token == 4, "the next cycle"
    press(panel.strip, KEY.Key_Right)
    assert "Token 6 of 8, 0.10 s, id 9, cycle 2: resampled. Rejected drafts here: 6, 7." in panel.reading.text()
    assert "sampled by the target model in place of" in panel.reading.toolTip()
    for key, token in ((KEY.Key_Space, 5), (KEY.Key_End, 7), (KEY.Key_Home, 0)):
        press(panel.strip, key)
        assert panel.strip.cursor_token == token
    place = panel.strip.token_rectangle(6).center().toPoint()
    QTest.mouseClick(panel.strip, Qt.MouseButton.LeftButton, pos=place)
    assert panel.strip.cursor_token == 6
    assert [heard.at(index) for index in range(heard.count())] == [["B", pytest.approx(one)] for one in (0.1, 2.0)]


def test_a_long_take_is_broken_into_lines_that_keep_their_time_and_copied_as_text(panel: DecodingPanel) -> None:
    wide = panel.strip.lines
    panel.resize(460, 480)
    assert panel.strip.lines > wide
    cells = [panel.strip.token_rectangle(index) for index in range(8)]
    assert all(cell.right() <= panel.strip.width() for cell in cells)
    press(panel.strip, KEY.Key_C, modifier=Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t")[:4] == ["token", "seconds", "id", "outcome"]
    assert lines[6] == "6\t0.100\t9\tresampled\t2\t6 7"


def test_letters_stand_out_from_their_fates_in_both_themes(panel: DecodingPanel) -> None:
    recolour(panel, DARK)
    for colours in (LIGHT, DARK):
        fills = outcome_colours(colours)
        assert all(contrast(fills[outcome], colours.on_accent) >= 4.5 for outcome in ("accepted", "resampled", "bonus"))
        assert contrast(fills["decoded"], colours.on_accent) >= 4.3


def test_tokens_are_drawn_while_a_take_is_made(panel: DecodingPanel) -> None:
    def seen(cycles: int) -> Trace:
        return Trace(decoding=replace(TRACE, passages=(TRACE.passages[0][:cycles],), starts=(0.0,), run_away=(False,)))

    panel.show_side("B")
    panel.show_coming("A", seen(1))
    assert panel.side == "A" and panel.headline.text().startswith("Take A, streaming: ")
    first = len(panel.strip.tokens)
    panel.set_position("A", 0.03)
    panel.strip.move_cursor(1)
    panel.show_coming("A", seen(2))
    assert len(panel.strip.tokens) > first
    assert (panel.strip.position, panel.strip.cursor_token) == (0.03, 1), "playhead and cursor stay"
    assert panel.values["measured"].text() in ("–", "– (no baseline)"), "it is not finished"
    panel.show_coming("", Trace())
    assert panel.headline.text().startswith("Baseline: ")
