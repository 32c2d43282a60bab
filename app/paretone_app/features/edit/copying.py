"""The figures of a plot or a table as tab-separated text, with their titles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QTableView, QToolBar, QTreeView, QWidget

from paretone_app.numbers import counted


@runtime_checkable
class Copyable(Protocol):
    """A plot or a grid of cells."""

    def as_text(self) -> str:
        """All its values, tab-separated, the first line their titles."""


@dataclass(frozen=True)
class Figures:
    """Copied figures."""

    title: str
    text: str

    @property
    def rows(self) -> int:
        """Number of lines below the titles."""
        return max(0, len(self.text.splitlines()) - 1)

    @property
    def words(self) -> str:
        """What was copied, as a sentence."""
        return f"Copied {self.title or 'the table'}: {counted(self.rows, 'row', 'rows')}."


def figures_at(focus: QWidget | None) -> Figures | None:
    """The figures of what has the focus, else those of the largest plot or table in its panel; of a table with
    selected rows, these. ``None`` if there are none."""
    around = focus
    while around is not None:
        if _has_figures(around):
            return _figures(around)
        if around.isWindow() or isinstance(around.parentWidget(), QDockWidget | QToolBar):
            break
        around = around.parentWidget()
    if around is None or around.isWindow():
        return None
    found = [one for one in around.findChildren(QWidget) if one.isVisible() and _has_figures(one)]
    return _figures(max(found, key=lambda one: one.width() * one.height())) if found else None


def _has_figures(widget: QWidget) -> bool:
    return isinstance(widget, Copyable | QTableView | QTreeView)


def _figures(widget: QWidget) -> Figures | None:
    if isinstance(widget, Copyable):
        text = widget.as_text()
    else:
        assert isinstance(widget, QTableView | QTreeView)
        text = _table(widget)
    return Figures(widget.accessibleName(), text) if text.strip() else None


def _table(view: QTableView | QTreeView) -> str:
    model = view.model()
    if model is None or not model.rowCount():
        return ""
    head = view.horizontalHeader() if isinstance(view, QTableView) else view.header()
    shown = [number for number in range(model.columnCount()) if not head.isSectionHidden(number)]
    columns = sorted(shown, key=head.visualIndex)
    ranges = view.selectionModel().selection()
    chosen = {row for one in map(ranges.at, range(ranges.count())) for row in range(one.top(), one.bottom() + 1)}
    rows = sorted(chosen) or range(model.rowCount())
    titles = [str(model.headerData(one, Qt.Orientation.Horizontal) or "") for one in columns]
    lines = [titles, *([str(model.index(row, one).data() or "") for one in columns] for row in rows)]
    return "\n".join("\t".join(" ".join(cell.split()) for cell in line) for line in lines)
