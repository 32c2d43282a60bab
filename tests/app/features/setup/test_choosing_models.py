"""Choosing a model only shows it; it is loaded once that is confirmed, and nothing else runs under its name. Techniques
are added from a list, and Setup fits: in the real window."""

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.models import catalogue
from paretone.models.declaration import Model
from paretone.session.events import AudioReady
from paretone.techniques import technique
from paretone.techniques.base import GROUPS
from paretone_app.features.palette import Palette
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.features.setup.presenter import size_text
from paretone_app.shell.window import MainWindow
from paretone_app.state.cost import LETTERS_A_SECOND
from paretone_app.state.jobs import Kind
from paretone_app.widgets.layouts import Scrolled
from tests.app.conftest import SMALL, activated, chosen
from tests.app.holding import Posts

MISSING = "E2TTS_Base"
"""A model whose weights are not there."""
PARTS = f"{SMALL} strategy views export guide training"


def choose(window: MainWindow, model: str) -> SetupPanel:
    """Choose ``model`` in Setup, as a click or an arrow key does."""
    chosen(window.panels["setup"].model_choice.box, model)
    return window.panels["setup"]


def test_nothing_runs_while_another_model_is_shown_than_is_loaded(window: MainWindow) -> None:
    action, loaded = window.action, window.state.selection.entry.title
    assert action.baseline.isEnabled()
    choose(window, MISSING)
    reason = f"{catalogue.entry(MISSING).title} is chosen but not loaded: "
    for one in (action.baseline, action.accelerated, action["calibrate"], action.export_profile):
        assert not one.isEnabled()
        assert one.toolTip().startswith(reason), one.text()
    hint = f"{reason}choose its folder or download it, or choose {loaded} again."
    assert window.features["guide"].guide.hint.text() == hint
    assert not window.features["views"].views.compute_button.isEnabled()
    choose(window, window.state.selection.model_id)
    assert action.baseline.isEnabled()


def test_the_text_of_the_other_model_goes_with_it(window: MainWindow) -> None:
    setup = window.panels["setup"]
    before = setup.model_choice.note.text()
    choose(window, MISSING)
    assert "does not come with Paretone (licence of the weights: CC-BY-NC-4.0)" in setup.model_choice.note.text()
    assert setup.model_choice.folder.isVisibleTo(setup) and setup.model_choice.download.isVisibleTo(setup)
    assert window.state.selection.model_id == "f5-mini" and not setup.model_choice.load.isVisibleTo(setup)
    assert setup.cost.text() == f"<b>Cost</b> is shown once {catalogue.entry(MISSING).title} is loaded."
    choose(window, window.state.selection.model_id)
    assert setup.model_choice.note.text() == before and "steps" in setup.cost.text()
    assert not setup.model_choice.folder.isVisibleTo(setup) and not setup.model_choice.keep.isVisibleTo(setup)


def test_arrows_only_choose_and_the_loaded_model_can_be_kept(window: MainWindow, qtbot: QtBot) -> None:
    setup, loaded = window.panels["setup"], window.state.selection.model_id
    for _ in range(3):
        qtbot.keyClick(setup.model_choice.box, Qt.Key.Key_Down)
    assert setup.model_choice.box.currentData() == window.state.selection.candidate != loaded
    assert not window.jobs.busy
    assert (window.state.selection.model_id, window.state.selection.ready) == (loaded, True)
    qtbot.mouseClick(setup.model_choice.keep, Qt.MouseButton.LeftButton)
    assert (setup.model_choice.box.currentData(), window.state.selection.candidate) == (loaded, "")


def test_loading_lets_the_take_end(window: MainWindow, shared_posts: Posts, qtbot: QtBot) -> None:
    banner = window.notices.banner
    loaded = window.state.selection.model_id
    other = next(one.id for one in catalogue.models() if one.available and one.id != loaded)
    shared_posts.hold_at(AudioReady)
    window.action.baseline.trigger()
    setup = choose(window, other)
    qtbot.keyClick(setup.model_choice.box, Qt.Key.Key_Return)
    assert [job.kind for job in window.jobs.all] == [Kind.BASELINE, Kind.LOAD] and not banner.cards
    assert window.state.selection.model_id == other and window.action.baseline.isEnabled()
    shared_posts.go_on()
    qtbot.waitUntil(lambda: window.state.selection.ready and not window.jobs.busy)
    assert window.state.comparison.take_a.setting.model == loaded, "the take was finished first"
    choose(window, loaded)
    qtbot.mouseClick(setup.model_choice.load, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.state.selection.ready and not window.jobs.busy)
    assert (window.state.selection.model_id, window.state.selection.candidate) == (loaded, "")


def test_a_vocoder_can_be_chosen_where_it_is_another_release(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, choice = [], window.panels["setup"].model_choice
    monkeypatch.setattr(Model, "available", True)
    offered = {one.id for one in catalogue.models() if choose(window, one.id) and choice.vocoder.isVisibleTo(choice)}
    assert offered == {one.id for one in catalogue.models() if one.has_separate_vocoder} and "f5-mini" not in offered
    choose(window, MISSING)
    monkeypatch.setattr(window.state.loading, "load_model", lambda *asked, **how: sent.append((*asked, how)))
    qtbot.mouseClick(choice.vocoder, Qt.MouseButton.LeftButton)
    (dialog,) = window.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(tmp_path))
    dialog.close()
    assert sent == [(MISSING, "", "", {"vocoder": str(tmp_path)})]
    assert choice.usual_vocoder.isVisibleTo(choice) and not choice.usual_vocoder.isEnabled()
    assert "usual" in choice.usual_vocoder.toolTip()
    monkeypatch.setitem(window.state.selection.vocoders, MISSING, str(tmp_path))
    choose(window, window.state.selection.model_id)
    choose(window, MISSING)
    assert str(tmp_path) in choice.vocoder.toolTip()
    qtbot.mouseClick(choice.usual_vocoder, Qt.MouseButton.LeftButton)
    assert sent[-1] == (MISSING, "", "", {"vocoder": ""})
    choose(window, window.state.selection.model_id)


def test_enter_accepts_no_licence(window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody listens there, so that the size is not known at once, wherever the test runs.
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    window.state.selection.consider_model(MISSING)
    window.panels["setup"].model_choice.can["download"].trigger()
    box = window.findChild(QMessageBox)
    assert "CC-BY-NC-4.0" in box.text() and box.informativeText().endswith("Asking the server for the size…")
    qtbot.waitUntil(lambda: "The size is not known:" in box.informativeText())
    assert box.defaultButton() is box.button(QMessageBox.StandardButton.Cancel)
    assert {one.text().replace("&", "") for one in box.buttons()} == {"Accept and download", "Cancel"}
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert not window.jobs.busy
    qtbot.waitUntil(lambda: not window.findChildren(QMessageBox))


def test_the_size_is_told_or_why_it_is_not_known() -> None:
    assert size_text((1_510_000_000, 1_510_000_000)) == "They are 1.51 GB."
    assert size_text((1_500_000_000, 500_000_000)) == "They are 1.50 GB; 1.00 GB of them are there already."
    assert size_text(PlainError("There is no network.")) == "The size is not known: There is no network."


def test_a_question_about_a_long_text_goes_once_another_is_to_be_spoken(window: MainWindow) -> None:
    for minutes in (10, 20):
        window.state.selection.set_text("x" * round(60 * minutes * LETTERS_A_SECOND))
        window.action.baseline.trigger()
    (card,) = window.notices.banner.cards
    assert "about 20 min of speech" in card.message.sentence


def opened(window: MainWindow, qtbot: QtBot) -> Palette:
    """The list, opened by its key."""
    activated(window, qtbot).panels["setup"].text.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_T, Qt.KeyboardModifier.ControlModifier)
    found = window.findChild(Palette)
    assert found is not None
    return found


@pytest.mark.parametrize("words", ["step pru", "stpe pruning", "Accelerating Flow-Mat", "well-placed steps", "EPSS"])
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
    window.state.selection.info = None
    found = opened(window, qtbot)
    assert {one.title: one.cells[1] for one in found.found}["Step pruning"] == "Known once the model is loaded"
    qtbot.keyClick(found.search, Qt.Key.Key_Down)
    second = found.chosen
    window.state.selection.set_info(replace(info, lacking=(("recording", "CUDA graphs need an NVIDIA GPU."),)))
    assert second is not None and found.chosen is not None and found.chosen.title == second.title
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
        qtbot.waitUntil(one.isVisible)
        qtbot.waitUntil(lambda one=one: seen.contains(QRect(one.mapTo(window, QPoint()), one.size())))
    tops = [one.mapTo(window, QPoint()).y() for one in needed]
    assert tops == sorted(tops), "text, voice and seed on top, then model, techniques and options"
