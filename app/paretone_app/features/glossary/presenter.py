"""The glossary's presenter: opens it at the term that the control with the focus is about."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QComboBox, QTableView, QWidget

from paretone.setting.plan import imported
from paretone_app.features.glossary.model import all_terms, lookup
from paretone_app.features.presenter import Presenter, Services
from paretone_app.shell.entries import TERM, Term


class GlossaryPresenter(Presenter):
    """Owns the dialog, which is there while it is open."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._named = services.terms
        self._terms: tuple[Term, ...] = ()
        self._actions.bind(self._actions["glossary"], self.open)

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms; collected when they are first wanted."""
        if not self._terms:
            self._terms = all_terms(term for name in self._named for term in imported(name))
        return self._terms

    def open(self) -> None:
        """Open the glossary at what has the focus."""
        self.show(self.term_of(QApplication.focusWidget()))

    def show(self, term: Term | None) -> None:
        """Open the glossary at ``term``."""
        from paretone_app.features.glossary.panel import GlossaryDialog

        dialog = GlossaryDialog(self.terms, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.go_to(term)
        dialog.open()

    def term_of(self, widget: QWidget | None) -> Term | None:
        """The term that ``widget`` is about, or what it is in."""
        while widget is not None and not widget.isWindow():
            for name in names_of(widget):
                if (found := lookup(self.terms, name)) is not None:
                    return found
            widget = widget.parentWidget()
        return None


def names_of(widget: QWidget) -> Iterator[str]:
    """What ``widget`` may be about, the most certain first."""
    yield str(widget.property(TERM) or "")
    if isinstance(widget, QTableView) and widget.model() is not None and widget.currentIndex().isValid():
        column = widget.currentIndex().column()
        yield str(widget.model().headerData(column, Qt.Orientation.Horizontal) or "")
    if isinstance(widget, QComboBox):
        yield widget.currentText().rstrip(" ↑↓")
    yield widget.accessibleName()
