"""The Edit menu in the real window: undo wherever the focus is, copying, finding, preferences."""

from pathlib import Path

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from paretone_app.features.edit import PreferencesDialog, UndoKeys, keeps
from paretone_app.features.palette import Palette, search
from paretone_app.shell.entries import Findable
from paretone_app.shell.theme import Scheme
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.boxes import DoubleSpinBox, SpinBox
from tests.app.conftest import SMALL, activated, chosen, run, typed
from tests.app.features.tradeoff.using import POINTS
from tests.app.sharing import borrowed  # noqa: F401

KEY, CONTROL, SHIFT = Qt.Key, Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
PARTS = f"{SMALL} lab studies tradeoff edit palette glossary"
LOOKED_AT = ("takes",)


def focus(widget: QWidget, qtbot: QtBot) -> None:
    activated(widget.window(), qtbot)
    widget.setFocus()
    qtbot.waitUntil(widget.hasFocus)


def setup_of(window: MainWindow):
    window.workspaces.go_to("setup")
    return window.panels["setup"]


def undo_all(window: MainWindow) -> None:
    while window.action.undo.isEnabled():
        window.action.undo.trigger()


def test_ctrl_z_in_a_spin_box_undoes_what_was_taken_over(window: MainWindow, qtbot: QtBot) -> None:
    panel, state = setup_of(window), window.state
    before = state.selection.seed
    focus(panel.seed, qtbot)
    typed(panel.seed, "7", qtbot)
    assert state.selection.seed == 7 and window.action.undo.text() == "&Undo: set seed 7"
    QTest.keyClick(panel.seed, KEY.Key_Z, CONTROL)
    assert state.selection.seed == before == panel.seed.value()
    QTest.keyClick(panel.seed, KEY.Key_Z, CONTROL | SHIFT)
    assert state.selection.seed == 7 == panel.seed.value()
    # What is being typed is undone first, by its key and from the menu.
    for undo in (lambda: QTest.keyClick(panel.seed, KEY.Key_Z, CONTROL), window.action.undo.trigger):
        state.editing.set_seed_locked(not state.selection.seed_locked)
        panel.seed.selectAll()
        QTest.keyClicks(panel.seed, "5")
        undo()
        assert state.selection.seed == 7 == panel.seed.value(), "not yet taken over"
    undo_all(window)
    QTest.keyClick(window, KEY.Key_Z, CONTROL)
    assert window.status.text == "Nothing to undo."


def test_a_text_undoes_typing_and_then_the_window_its_last_entry(window: MainWindow, qtbot: QtBot) -> None:
    panel, state = setup_of(window), window.state
    state.editing.set_seed(5)
    focus(panel.text, qtbot)
    assert not keeps(panel.text)
    before = panel.text.toPlainText()
    QTest.keyClicks(panel.text, "x")
    assert panel.text.toPlainText() != before and keeps(panel.text)
    QTest.keyClick(panel.text, KEY.Key_Z, CONTROL)
    assert panel.text.toPlainText() == before and state.selection.seed == 5
    for kind in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress):
        calibrates = QKeyEvent(kind, KEY.Key_K, CONTROL)
        assert UndoKeys(panel).eventFilter(panel.text, calibrates), "X11's fields would delete the rest of the line"
    QTest.keyClick(panel.text, KEY.Key_Z, CONTROL)
    assert state.selection.seed != 5
    state.editing.set_seed(5)
    focus(panel.voice_choice.voice, qtbot)
    QTest.keyClick(panel.voice_choice.voice, KEY.Key_Z, CONTROL)
    assert state.selection.seed != 5, "in a choice, it is the window's"


def test_fields_keep_their_keys_only_while_they_have_something_to_undo(qtbot: QtBot) -> None:
    line, text, whole, number = QLineEdit("a"), QPlainTextEdit("a"), SpinBox(), DoubleSpinBox()
    number.setSuffix(" s")
    for one in (line, text, whole, number):
        qtbot.addWidget(one)
        assert not keeps(one) and not keeps(one, redoes=True)
        one.show()
        one.selectAll()
        QTest.keyClicks(one, "1")
        assert keeps(one), one
    for box in (whole, number):
        box.interpretText()
        assert not keeps(box), "taken over"
        box.setSpecialValueText("none")
        box.setValue(0)
        assert not keeps(box)
    line.setReadOnly(True)
    text.setReadOnly(True)
    assert not keeps(line) and not keeps(text)


def test_figures_of_a_table_or_a_plot_are_copied_with_their_titles(window: MainWindow, qtbot: QtBot) -> None:
    focus(setup_of(window).seed, qtbot)
    window.action["copy_figures"].trigger()
    assert window.notices.banner.text.startswith("There are no figures to copy here; click a plot")
    make_take(window, qtbot)
    window.workspaces.go_to("takes")
    takes = window.panels["takes"]
    takes.table.clearSelection()
    focus(takes.table, qtbot)
    QTest.keyClick(takes.table, KEY.Key_C, CONTROL | SHIFT)
    head, *rows = (line.split("\t") for line in QApplication.clipboard().text().splitlines())
    assert {"Model", "RTF"} <= set(head) and len(rows) == takes.table.model().rowCount()
    assert {len(row) for row in rows} == {len(head)}
    assert window.status.text.startswith(f"Copied Takes: {len(rows)} row")

    window.workspaces.go_to("tradeoff")
    tradeoff = window.panels["tradeoff"]
    tradeoff.show_points(POINTS)
    focus(tradeoff.filter_line.search, qtbot)
    window.action["copy_figures"].trigger()
    assert QApplication.clipboard().text() == tradeoff.plot.as_text(), "the panel's plot"


def make_take(window: MainWindow, qtbot: QtBot) -> str:
    run(window, window.action.baseline, qtbot)
    return window.state.comparison.take_a.id


def opened(window: MainWindow, qtbot: QtBot) -> Palette:
    window.action["find"].trigger()
    finder = window.findChild(Palette)
    qtbot.waitUntil(finder.isVisible)
    return finder


def test_words_find_titles_before_all_else() -> None:
    def entry(title: str, meaning: str = "") -> Findable:
        return Findable(title, "Action", "", meaning, print)

    load, unload, other = entry("Load model"), entry("Unload"), entry("Cancel", "stop a load")
    assert search([other, unload, load], "load") == [load, unload, other]
    take, reload = Findable("Load one", "Take", "", "", print), entry("Once more, load")
    assert search([take, other, reload, load], "lo") == [load, take, reload, other], "actions before takes"
    assert search([other, load], "model LOAD") == [load] and search([load], "no such") == []
    assert search([other, load], "", recent=[load.key]) == [load, other]
    assert search([other, load, unload], "laod modle") == [load], "misspelt"


def test_an_action_is_found_by_its_words_and_done_or_says_why_not(window: MainWindow, qtbot: QtBot) -> None:
    entries = {(one.kind, one.title) for one in window.features["palette"].entries()}
    kinds = {"Action", "Model", "Voice", "Technique", "As published", "Setting", "Term"}
    assert kinds <= {kind for kind, _ in entries}
    assert ("Action", "Preferences") in entries and any(title.startswith("RTF") for _, title in entries)
    focus(setup_of(window).seed, qtbot)
    finder = opened(window, qtbot)
    QTest.keyClicks(finder.search, "go to takes")
    assert finder.chosen is not None and (finder.chosen.title, finder.chosen.kind) == ("Go to Takes", "Action")
    QTest.keyClick(finder.search, KEY.Key_Return)
    qtbot.waitUntil(lambda: window.findChild(Palette) is None)
    assert window.panels["takes"].isVisible()
    # One that cannot be done says why.
    focus(setup_of(window).seed, qtbot)
    window.state.undo_stack.clear()
    finder = opened(window, qtbot)
    QTest.keyClicks(finder.search, "undo")
    assert finder.chosen is not None and finder.chosen.title == "Undo"
    QTest.keyClick(finder.search, KEY.Key_Return)
    assert finder.isVisible() and finder.meaning.text() == "Nothing to undo."
    finder.search.setText("zzzz")
    assert finder.chosen is None and "zzzz" in finder.meaning.text()
    finder.reject()


def test_what_is_chosen_by_name_comes_first_next_time(window: MainWindow, qtbot: QtBot) -> None:
    chosen, panel = window.state.selection, window.panels["setup"]

    def choose(words: str, kind: str) -> str:
        window.action["palette"].trigger()
        palette = window.findChild(Palette)
        assert palette is not None
        QTest.keyClicks(palette.search, words)
        assert palette.chosen is not None and palette.chosen.kind == kind
        title = palette.chosen.title
        QTest.keyClick(palette.search, KEY.Key_Return)
        qtbot.waitUntil(lambda: window.findChild(Palette) is None)
        return title

    try:
        assert choose("ditreducio", "Technique").startswith("DiTReducio") and chosen.is_used("ditreducio")
        assert panel.techniques.groups["ditreducio"].isVisible()
        choose("threshold", "Setting")
        assert window.focusWidget() is panel.techniques.groups["ditreducio"].controls.editor("threshold")
        choose("ditreducio t2", "As published")
        assert chosen.knobs("ditreducio")["threshold"] == 0.1
        choose("steps", "Setting")
        assert window.focusWidget() is panel.sampler.editor("steps")
        voice = choose("bella", "Voice")
        assert chosen.voice is not None and chosen.voice.title == voice
        window.action["palette"].trigger()
        again = window.findChild(Palette)
        assert [one.title for one in again.found[:1]] == [voice]
        again.reject()
    finally:
        undo_all(window)


def test_a_take_is_found_and_shown_even_if_a_filter_hides_it(window: MainWindow, qtbot: QtBot) -> None:
    takes = window.panels["takes"]
    take = make_take(window, qtbot)
    takes.search.setText("no take has this")
    focus(setup_of(window).seed, qtbot)
    finder = opened(window, qtbot)
    QTest.keyClicks(finder.search, window.state.comparison.take_a.text.lower())
    assert finder.chosen is not None and finder.chosen.kind == "Take"
    QTest.keyClick(finder.search, KEY.Key_Return)
    assert [one.id for one in takes.selected()] == [take] and takes.search.text() == ""
    # In a panel with a search field it goes there, and again opens the list.
    focus(takes.table, qtbot)
    qtbot.waitUntil(lambda: window.findChild(Palette) is None)
    window.action["find"].trigger()
    assert takes.search.hasFocus() and window.findChild(Palette) is None
    opened(window, qtbot).reject()


def test_preferences_hold_at_once(window: MainWindow, qtbot: QtBot) -> None:
    window.action["preferences"].trigger()
    dialog = window.findChild(PreferencesDialog)
    qtbot.waitUntil(dialog.isVisible)
    theme = window.theme
    kept, other = theme.scheme, Scheme.DARK if theme.scheme is not Scheme.DARK else Scheme.LIGHT
    chosen(dialog.scheme, other)
    assert theme.scheme is other
    theme.apply(kept)
    assert dialog.scheme.currentData() is kept, "follows the menu"
    devices = [dialog.device.itemData(one) for one in range(dialog.device.count())]
    assert devices[0] == "auto" and "cpu" in devices
    with qtbot.waitSignal(window.jobs.ended, timeout=120_000):
        chosen(dialog.device, "cpu")
    assert window.state.selection.device_wanted == "cpu"
    assert Path(dialog.folder.text()) == window.results.library.folder.parent
    dialog.reject()
    qtbot.waitUntil(lambda: window.findChild(PreferencesDialog) is None)
    window.action.device_wanted.emit("auto")
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=120_000)
