"""The glossary, opened at the term of the focused control."""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialog,
    QListWidget,
    QListWidgetItem,
    QTableView,
    QTextBrowser,
    QWidget,
)

from paretone.setting.plan import imported
from paretone_app.features.glossary.model import all_terms, lookup, search
from paretone_app.features.palette import SearchField
from paretone_app.features.presenter import Presenter, Services
from paretone_app.shell.entries import TERM, Findable, Term
from paretone_app.widgets import build


class GlossaryDialog(QDialog):
    """Up and Down move through the list while the user types."""

    def __init__(self, terms: Sequence[Term], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._terms = tuple(terms)
        self.setWindowTitle("Glossary")
        self.list = build.named(QListWidget(), "Terms")
        self.search = SearchField("Search", "words, symbols and meanings", self.list)
        self.search.textChanged.connect(self._show_found)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # Long titles are elided.
        self.list.currentItemChanged.connect(self._show_term)
        self.page = build.named(QTextBrowser(), "Meaning")
        em = self.fontMetrics().height()
        parts = build.splitter(Qt.Orientation.Horizontal, [(self.list, 1), (self.page, 2)], [20 * em, 26 * em])
        build.above_close(self, self.search, (parts, 1))
        self.resize(48 * em, 30 * em)
        self._show_found()

    @property
    def shown(self) -> Term | None:
        item = self.list.currentItem()
        return None if item is None else item.data(Qt.ItemDataRole.UserRole)

    def go_to(self, term: Term | None) -> None:
        self.search.clear()
        self.list.setCurrentRow(self._terms.index(term) if term is not None else 0)
        self.list.scrollToItem(self.list.currentItem(), QListWidget.ScrollHint.PositionAtCenter)
        (self.search if term is None else self.list).setFocus()

    def _show_found(self) -> None:
        words = self.search.text()
        self.list.clear()
        for term in search(self._terms, words) if words.strip() else self._terms:
            item = QListWidgetItem(term.label + (f"  ({term.owner})" if term.owner else ""), self.list)
            item.setData(Qt.ItemDataRole.UserRole, term)
        self.list.setCurrentRow(0)
        if not self.list.count():
            self.page.setHtml(f"<p>Nothing here speaks of “{escape(words)}”.</p>")

    def _show_term(self) -> None:
        if (term := self.shown) is not None:
            facts = [("Symbol", term.symbol), ("Unit", term.unit), ("Of", term.owner), ("Source", term.source)]
            rows = "".join(f"<p><b>{name}:</b> {escape(value)}</p>" for name, value in facts if value)
            self.page.setHtml(f"<h3>{escape(term.label)}</h3><p>{escape(term.text)}</p>{rows}")
            self.list.currentItem().setData(Qt.ItemDataRole.AccessibleDescriptionRole, term.text)


class GlossaryPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._named = services.terms
        self._actions.bind(self._actions["glossary"], lambda: self.show(self.term_of(QApplication.focusWidget())))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return all_terms(term for name in self._named for term in imported(name))

    def show(self, term: Term | None) -> None:
        dialog = GlossaryDialog(self.terms, self._window)
        dialog.go_to(term)
        build.show(dialog)

    def findable(self) -> Iterator[Findable]:
        for term in self.terms:
            yield Findable(term.label, "Term", term.owner, term.text, partial(self.show, term))

    def term_of(self, widget: QWidget | None) -> Term | None:
        """The term of ``widget``, or of the nearest enclosing widget with a term."""
        while widget is not None and not widget.isWindow():
            for name in names_of(widget):
                if (found := lookup(self.terms, name)) is not None:
                    return found
            widget = widget.parentWidget()
        return None


def names_of(widget: QWidget) -> Iterator[str]:
    """Candidate term names for ``widget``, the most certain first."""
    yield str(widget.property(TERM) or "")
    if isinstance(widget, QTableView) and widget.model() is not None and widget.currentIndex().isValid():
        yield str(widget.model().headerData(widget.currentIndex().column(), Qt.Orientation.Horizontal) or "")
    if isinstance(widget, QComboBox):
        yield widget.currentText().rstrip(" ↑↓")
    yield widget.accessibleName()
