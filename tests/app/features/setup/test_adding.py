"""*+ Add technique*, and that Setup fits: in the real window."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from paretone.techniques import technique
from paretone.techniques.base import GROUPS
from paretone_app.features.palette import Palette
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.layouts import Scrolled

PARTS = "setup synthesis strategy player listen takes training"


def opened(window: MainWindow, qtbot: QtBot) -> Palette:
    """The list, opened by its key."""
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    window.panels["setup"].text.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_T, Qt.KeyboardModifier.ControlModifier)
    found = window.findChild(Palette)
    assert found is not None
    return found


@pytest.mark.parametrize("words", ["step pru", "stpe pruning", "Accelerating Flow-Matching", "well-placed steps"])
def test_a_technique_is_found_by_words_and_added_by_keys(window: MainWindow, qtbot: QtBot, words: str) -> None:
    setup, selection = window.panels["setup"], window.state.selection
    found = opened(window, qtbot)
    qtbot.keyClicks(found.search, words)
    assert found.chosen is not None and found.chosen.title == "Step pruning", technique("steps").paper.title
    assert "A few well-placed steps" in found.chosen.cells[0] and technique("steps").paper.title in found.meaning.text()
    qtbot.keyClick(found.search, Qt.Key.Key_Return)
    assert selection.is_used("steps")
    card = setup.techniques.groups["steps"]
    qtbot.waitUntil(lambda: window.focusWidget() is card)
    qtbot.keyClick(card, Qt.Key.Key_Space)
    assert not selection.is_used("steps") and card.isVisible()


def test_the_list_is_in_groups_and_says_what_applies_here(window: MainWindow, qtbot: QtBot) -> None:
    info, offered = window.state.selection.info, window.state.selection.techniques
    window.state.selection.info = replace(info, lacking=(("recording", "CUDA graphs need an NVIDIA GPU."),))
    found = opened(window, qtbot)
    assert {one.title for one in found.found} == {one.title.partition(" (")[0] for one in offered}
    rows = [found.list.topLevelItem(row) for row in range(found.list.topLevelItemCount())]
    headings = [row.text(0) for row in rows if not row.flags()]
    assert headings == [one for one in GROUPS if one in {each.listed_in for each in offered}]
    here = {one.title: one.cells[1] for one in found.found}
    assert here["DiTReducio"] == "In use" and here["Step pruning"] == "Applies here"
    assert here["First-block cache"] == "Not with DiTReducio"
    # What cannot run here is grey and says why; Enter adds nothing.
    graphs = next(one for one in found.found if one.why_not)
    qtbot.keyClicks(found.search, graphs.title)
    before = window.state.selection.setting
    qtbot.keyClick(found.search, Qt.Key.Key_Return)
    assert found.isVisible() and graphs.why_not in found.meaning.text() and window.state.selection.setting == before
    window.state.selection.info = info
    found.reject()


def test_the_main_job_needs_no_scrolling(window: MainWindow, qtbot: QtBot) -> None:
    window.resize(1440, 900)
    setup = window.panels["setup"]
    window.workspaces.go_to("setup")
    card = setup.techniques.groups["ditreducio"]
    area = setup.findChild(Scrolled)
    qtbot.waitUntil(lambda: area.verticalScrollBar().maximum() == 0)
    seen = QRect(area.viewport().mapTo(window, QPoint()), area.viewport().size())
    needed: list[QWidget] = [setup.text, setup.voice_choice.voice, setup.seed, setup.model_choice.box, card]
    needed += [card.controls.editor("threshold"), setup.techniques.add, setup.sampler.fold, setup.grid]
    for one in needed:
        qtbot.waitUntil(
            lambda one=one: one.isVisible() and seen.contains(QRect(one.mapTo(window, QPoint()), one.size()))
        )
    tops = [one.mapTo(window, QPoint()).y() for one in needed]
    assert tops == sorted(tops), "text, voice and seed on top, then model, techniques and options"
