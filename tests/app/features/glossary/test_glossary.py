"""Every knob and figure of the window has an entry, which F1 opens."""

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QTableView, QWidget
from pytestqt.qtbot import QtBot

from paretone.models import catalogue
from paretone.techniques import techniques
from paretone_app.features.glossary import model
from paretone_app.features.glossary.presenter import GlossaryDialog, GlossaryPresenter
from paretone_app.shell.entries import TERM, Term
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.knob_controls import KnobControls

TERMS = (
    Term("Threshold", "Limit of the error.", "δ", "", "A paper", "DiTReducio"),
    Term("Threshold", "Another limit.", "τ", owner="First block"),
    Term("RTF", "Seconds per second."),
    Term("Log-mel distance", "How far apart."),
    Term("Distance", "How far."),
)


def test_terms_are_found_by_key_title_symbol_and_words() -> None:
    threshold, other, rtf, log_mel, distance = TERMS
    for name, term in (
        ("First block: Threshold", other),
        ("threshold", threshold),
        ("δ", threshold),
        ("RTF 0.31, last take", rtf),
        ("Log-mel distance of B", log_mel),
        ("The distance here", distance),
        ("distances", None),
        ("", None),
    ):
        assert model.lookup(TERMS, name) is term, name
    assert model.search(TERMS, "limit") == (threshold, other)
    assert model.search(TERMS, "limit first") == (other,)
    assert model.search(TERMS, "dist")[0] is distance, "titles that begin so come first"


def test_all_declared_knobs_have_entries_with_symbol_and_paper() -> None:
    terms = model.all_terms(())
    keys = {one.key: one for one in terms}
    for technique in techniques():
        assert technique.title in keys
        for knob in technique.knobs:
            term = keys[f"{technique.title}: {knob.title}"]
            assert (term.symbol, term.unit) == (knob.symbol, knob.unit)
            assert technique.paper.reference in term.source
    for entry in catalogue.models():
        assert all(f"Sampler: {knob.title}" in keys for knob in entry.options)


def figures(window: MainWindow) -> Iterator[tuple[QWidget, str]]:
    """Knobs, names of figures, columns of tables and axes of the window, with what each names."""
    for one in window.findChildren(QWidget):
        if one.property(TERM):
            yield one, str(one.property(TERM))
    for panel in ("takes", "transfer"):
        for table in window.panels[panel].findChildren(QTableView):
            for column in range(table.model().columnCount()):
                title = str(table.model().headerData(column, Qt.Orientation.Horizontal))
                if title[:1].isalpha():
                    yield table, title
    line = window.panels["tradeoff"].options_line
    for box in line.findChildren(QComboBox):
        for index in range(box.count()):
            title = box.itemText(index).rstrip(" ↑↓").partition(" (")[0]
            if title:
                yield box, title


def test_every_knob_and_figure_of_the_window_has_an_entry(shared_window: MainWindow) -> None:
    glossary = shared_window.features.find(GlossaryPresenter)
    shown = list(figures(shared_window))
    assert len(shown) > 60
    missing = {title for _, title in shown if model.lookup(glossary.terms, title) is None}
    assert not missing
    for controls in shared_window.findChildren(KnobControls):
        for knob in controls.knobs:
            editor = controls.editor(knob.name)
            found = glossary.term_of(editor)
            assert found is not None, editor.accessibleName()
            if found.owner:
                assert found.title == knob.title, "it is the knob's own, not its technique's"


def test_f1_opens_the_glossary_at_what_has_the_focus(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    window = borrowed_window
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    spin = window.panels["setup"].techniques.groups["ditreducio"].controls.editor("threshold")
    spin.setFocus()
    QTest.keyClick(spin, Qt.Key.Key_F1)
    dialog = window.findChild(GlossaryDialog)
    assert dialog is not None and dialog.shown.key == "DiTReducio: Threshold"
    page = dialog.page.toPlainText()
    assert "δ" in page and "2509.09748" in page
    dialog.search.setFocus()
    QTest.keyClicks(dialog.search, "rtf")
    assert dialog.shown.title == "RTF"
    QTest.keyClicks(dialog.search, "zzz")
    assert dialog.shown is None and "zzz" in dialog.page.toPlainText()
    dialog.close()
