"""A plot as a widget: frames on a pyqtgraph view, and what every plot has for keyboard, screen readers and paper."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import (
    QAction,
    QColor,
    QFocusEvent,
    QFont,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QGraphicsRectItem,
    QGraphicsScene,
    QGraphicsTextItem,
    QMessageBox,
    QSizePolicy,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from paretone.errors import PlainError
from paretone_app.plotting import files
from paretone_app.plotting.cursor_canvas import CursorCanvas
from paretone_app.plotting.frame import Frame, pen
from paretone_app.shell import file_dialogs
from paretone_app.shell.colours import Colours
from paretone_app.widgets.layouts import VBoxLayout


class ScaledView(pg.GraphicsView):
    """Draws at its own size from ``needed`` on, in pixels; below that, everything in it shrinks, letters too."""

    needed = QSizeF(0, 0)

    def fit(self) -> QRectF:
        """Take the size that there is; gives the part of the scene that is seen, which pyqtgraph fits into the view."""
        width, height = max(self.width(), 1), max(self.height(), 1)
        shrunk = max(self.needed.width() / width, self.needed.height() / height, 1.0)
        self.autoPixelRange = shrunk == 1.0
        self.range = QRectF(0, 0, width * shrunk, height * shrunk)
        return self.range

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        self.fit()
        super().resizeEvent(event)


_WIDEST = 24
"""Greatest initial width of a column, in heights of the font."""


class TableTwin(QWidget):
    """A window with the table; Ctrl+C copies it, Esc closes it."""

    def __init__(self, owner: QWidget) -> None:
        super().__init__(owner, Qt.WindowType.Window)
        self._text = ""
        self.table = QTableWidget()
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.verticalHeader().hide()
        column = VBoxLayout(self)
        column.addWidget(self.table)
        self.setFocusProxy(self.table)

    def show_text(self, title: str, text: str) -> None:
        """Show ``text``, whose cells are set apart by tabs and whose first line is the head."""
        self._text = text
        self.setWindowTitle(f"{title} – Paretone")
        self.table.setAccessibleName(title)
        head, *rows = (line.split("\t") for line in text.splitlines() or [""])
        self.table.setColumnCount(len(head))
        self.table.setHorizontalHeaderLabels(head)
        self.table.setRowCount(len(rows))
        for row, cells in enumerate(rows):
            for place, cell in enumerate(cells[: len(head)]):
                self.table.setItem(row, place, QTableWidgetItem(cell))
        self.table.resizeColumnsToContents()
        em = self.fontMetrics().height()
        for place in range(len(head)):
            self.table.setColumnWidth(place, min(self.table.columnWidth(place), _WIDEST * em))
        self.resize(52 * em, 28 * em)
        self.show()
        self.activateWindow()
        self.table.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self._text)
        elif event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)


_ON_TOP = 1000.0


class Chart(CursorCanvas):
    """Subclasses say what is drawn in :attr:`frame`, and read it in words; mouse and keys are theirs. Ctrl+C copies
    every chart as a table, T shows that in a window; its menu has both, and saves it as SVG, PNG or CSV.

    On paper it is made for one drawing, and its points stay shapes.
    """

    ideal, least = (32.0, 20.0), (18.0, 12.0)
    """Its size and the least one, in heights of the font."""
    framed = True
    """Whether the focus is seen as a frame around it."""
    saved_alone = True
    """Whether its menu saves it; charts that are saved on a sheet with more than themselves leave that to their
    panel."""

    def __init__(self, name: str, colours: Colours, parent: QWidget | None = None, on_paper: bool = False) -> None:
        super().__init__(colours, parent)
        self.view = ScaledView(self, useOpenGL=False)
        for one in (self.view, self.view.viewport()):
            one.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # The widget has mouse and keys.
        self.view.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.view.setBackground(QColor(colours.base))
        # A few items, most of which change together.
        self.view.scene().setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)
        self.on_paper = on_paper
        self.frames: list[Frame] = []
        self.frame = self.add_frame()
        self._focus = QGraphicsRectItem()
        self._focus.setZValue(_ON_TOP)
        self.view.addItem(self._focus)
        self._note = QGraphicsTextItem()
        self.view.addItem(self._note)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(name)
        self._twin: TableTwin | None = None
        if not on_paper:
            self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
            acts = {"Copy as table\tCtrl+C": self.copy, "Show as table\tT": self.show_table}
            for ending in file_dialogs.PLOTS if self.saved_alone else ():
                acts[f"Save as {ending.upper()}…"] = partial(self._ask_where_to_save, ending)
            for text, act in acts.items():
                action = QAction(text, self)
                action.triggered.connect(lambda _=False, act=act: act())
                self.addAction(action)

    def add_frame(self) -> Frame:
        """One more frame; :meth:`arrange` gives it its place."""
        frame = Frame(self.colours, self.font(), self.on_paper)
        self.view.addItem(frame)
        self.frames.append(frame)
        return frame

    def set_note(self, text: str) -> None:
        """Say in the middle why there is nothing to see, or nothing."""
        self._note.setPlainText(text)
        self._place_note()

    def _place_note(self) -> None:
        room = QRectF(self.rect())
        self._note.setFont(self.font())
        self._note.setDefaultTextColor(QColor(self.colours.muted))
        self._note.setTextWidth(-1)  # Else what it would like is what it had before.
        self._note.setTextWidth(min(self._note.document().idealWidth(), room.width()))
        self._note.setPos(room.center() - self._note.boundingRect().center())

    def _place_focus(self) -> None:
        """A frame around a chart that has the keys."""
        self._focus.setVisible(self.framed and self.hasFocus())
        self._focus.setPen(pen(self.colours.accent, 2))
        self._focus.setRect(self.view.range.adjusted(1, 1, -1, -1))

    # --- As a table --------------------------------------------------------------------------------------------------
    def show_table(self) -> None:
        """Show the values as a table in a window."""
        if self._twin is None:
            self._twin = TableTwin(self)
        self._twin.show_text(self.accessibleName(), self.as_text())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_T and not event.modifiers():
            self.show_table()
        else:
            super().keyPressEvent(event)

    def _is_own(self, event: QKeyEvent) -> bool:
        return (event.key() == Qt.Key.Key_T and not event.modifiers()) or super()._is_own(event)

    # --- As a file ---------------------------------------------------------------------------------------------------
    def _ask_where_to_save(self, ending: str) -> None:
        name = self.accessibleName()
        file_dialogs.ask_where_to_write(
            self, f"Save “{name}”", file_dialogs.PLOTS[ending], f"{name}.{ending}", self._save
        )

    def _save(self, path: Path) -> None:
        try:
            self.write(path)
        except PlainError as error:
            box = QMessageBox(QMessageBox.Icon.Warning, "Paretone", str(error), parent=self)
            box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            box.open()

    def write(self, path: Path) -> None:
        """Write it as it is shown, as the ending of ``path`` says: ``.svg``, ``.png``, or its table as ``.csv``. Raises
        :class:`PlainError` for another ending, or when the file cannot be written."""
        files.write(
            path,
            {
                ".svg": lambda: files.svg(self.size(), self._paint_page, self.accessibleName(), self.cursor_text()),
                ".png": lambda: files.png(self.size(), self._paint_page),
                ".csv": lambda: files.comma_separated(self.as_text()),
            },
        )

    def _paint_page(self, painter: QPainter) -> None:
        """Paint the shown chart, its points as shapes, without the focus."""
        whole = QRectF(self.rect())
        painter.fillRect(whole, QColor(self.colours.base))
        self._focus.hide()
        for frame in self.frames:
            frame.on_paper = True
        self.paint(painter, whole)
        for frame in self.frames:
            frame.on_paper = self.on_paper
        self._place_focus()

    # --- Look and size -----------------------------------------------------------------------------------------------
    @property
    def em(self) -> float:
        """Height of the font."""
        return self.frame.em

    def set_colours(self, colours: Colours) -> None:
        self.colours = colours
        self.view.setBackground(QColor(colours.base))
        self._set_look()

    def _set_look(self) -> None:
        for frame in self.frames:
            frame.set_look(self.colours, self.font())
        self._place_note()
        self._place_focus()
        self.show_again()

    def show_again(self) -> None:
        """Theme or font are others: give everything its colours."""

    def arrange(self, whole: QRectF) -> None:
        """Give the frames their places."""
        self.frame.setGeometry(whole)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.view.setGeometry(self.rect())
        self.arrange(self.view.fit())
        self._place_note()
        self._place_focus()

    def set_needed(self, size: QSizeF) -> None:
        """Below this size, in pixels, everything shrinks instead of being cut off."""
        self.view.needed = size
        self.view.resizeEvent(None)
        self.arrange(self.view.fit())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._set_look()

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(round(self.ideal[0] * em), round(self.ideal[1] * em))

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(round(self.least[0] * em), round(self.least[1] * em))

    # --- Drawing -----------------------------------------------------------------------------------------------------
    def lay_out(self, size: QSize, font: QFont) -> None:
        """Draw it in this size, on no screen."""
        self.setWindowFlags(Qt.WindowType.Window)
        self.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        self.setFont(font)
        self.resize(size)
        self.show()

    def paint(self, painter: QPainter, whole: QRectF) -> None:
        """Draw all of it on paper."""
        self.view.render(painter, whole, self.view.rect())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._place_focus()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._place_focus()
