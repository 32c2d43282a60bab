"""A plot as a widget: frames on a pyqtgraph view, with keys, accessibility, table and file export."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFocusEvent,
    QFont,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QResizeEvent,
    QWheelEvent,
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
from paretone.figures.scatter import Scale
from paretone_app.plotting import files
from paretone_app.plotting.cursor_canvas import CursorCanvas
from paretone_app.plotting.frame import Frame, pen
from paretone_app.shell import file_dialogs
from paretone_app.shell.colours import Colours
from paretone_app.widgets import build
from paretone_app.widgets.layouts import VBoxLayout


class ScaledView(pg.GraphicsView):
    """Draws at natural size if at least ``needed`` pixels are available; otherwise scales everything down."""

    needed = QSizeF(0, 0)

    def fit(self) -> QRectF:
        """Fit the current size; returns the visible part of the scene, which pyqtgraph fits into the view."""
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
        VBoxLayout(self).addWidget(self.table)
        self.setFocusProxy(self.table)

    def show_text(self, title: str, text: str) -> None:
        """Show ``text``: tab-separated cells, the first line as header."""
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


class Chart(CursorCanvas):
    """Base of all charts. Subclasses draw into :attr:`frame`, describe the content and handle mouse and keys. Ctrl+C
    copies the chart as a table, T shows it. On paper, it is made for one drawing, and its points stay vector shapes."""

    ideal, least = (32.0, 20.0), (18.0, 12.0)
    """Preferred and least size, in font heights."""
    framed = True
    """Whether a frame shows the focus."""
    saved_alone = True
    """Whether its menu saves it; off for charts that their panel saves on a larger sheet."""

    def __init__(self, name: str, colours: Colours, parent: QWidget | None = None, on_paper: bool = False) -> None:
        super().__init__(colours, parent)
        self.view = ScaledView(self, useOpenGL=False)
        for one in (self.view, self.view.viewport()):
            one.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # The widget handles mouse and keys.
        self.view.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.view.setBackground(QColor(colours.base))
        # Few items, most of which change together.
        self.view.scene().setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)
        self.on_paper = on_paper
        self.frames: list[Frame] = []
        self.frame = self.add_frame()
        self._focus = QGraphicsRectItem()
        self._focus.setZValue(1000.0)  # On top.
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
        """Add a frame, to be placed by :meth:`arrange`."""
        frame = Frame(self.colours, self.font(), self.on_paper)
        self.view.addItem(frame)
        self.frames.append(frame)
        return frame

    def set_note(self, text: str) -> None:
        """Show ``text`` in the middle, such as the reason for an empty chart."""
        self._note.setPlainText(text)
        self._place_note()

    def _place_note(self) -> None:
        room = QRectF(self.rect())
        self._note.setFont(self.font())
        self._note.setDefaultTextColor(QColor(self.colours.muted))
        self._note.setTextWidth(-1)  # Reset, or idealWidth() is the former width.
        self._note.setTextWidth(min(self._note.document().idealWidth(), room.width()))
        self._note.setPos(room.center() - self._note.boundingRect().center())

    def _place_focus(self) -> None:
        """Frame the chart while it has the focus."""
        self._focus.setVisible(self.framed and self.hasFocus())
        self._focus.setPen(pen(self.colours.accent, 2))
        self._focus.setRect(self.view.range.adjusted(1, 1, -1, -1))

    # --- As a table --------------------------------------------------------------------------------------------------
    def show_table(self) -> None:
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
            build.show(QMessageBox(QMessageBox.Icon.Warning, "Paretone", str(error), parent=self))

    def write(self, path: Path) -> None:
        """Write the chart as shown, in the format given by the suffix of ``path``: ``.svg``, ``.png``, or its table
        as ``.csv``. Raises :class:`PlainError` for another suffix, or if the file cannot be written."""
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
        """Redraw in the current theme and font."""

    def arrange(self, whole: QRectF) -> None:
        self.frame.setGeometry(whole)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.view.setGeometry(self.rect())
        self.arrange(self.view.fit())
        self._place_note()
        self._place_focus()

    def set_needed(self, size: QSizeF) -> None:
        """Set the size, in pixels, below which everything shrinks instead of being cut off."""
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

    def lay_out(self, size: QSize, font: QFont) -> None:
        """Lay it out in this size, off the screen."""
        self.setWindowFlags(Qt.WindowType.Window)
        self.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        self.setFont(font)
        self.resize(size)
        self.show()

    def paint(self, painter: QPainter, whole: QRectF) -> None:
        self.view.render(painter, whole, self.view.rect())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._place_focus()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._place_focus()


Sections = tuple[Scale | None, Scale | None]
"""Shown part of the X axis and of the Y axis; ``None`` for all."""
EVERYTHING: Sections = (None, None)
Wholes = tuple[Scale, Scale]


def axes_at(frame: Frame, place: QPointF) -> tuple[bool, bool]:
    """Axes that the mouse acts on: both in the plot, or the one below or left of it."""
    below, left = place.y() > frame.area.bottom(), place.x() < frame.area.left()
    return below or not left, left or not below


NEARER = (Qt.Key.Key_Plus, Qt.Key.Key_Equal)
_ZOOMS = (*NEARER, Qt.Key.Key_Minus, Qt.Key.Key_0)
_SHIFTS = {
    Qt.Key.Key_Left: (-1.0, 0.0),
    Qt.Key.Key_Right: (1.0, 0.0),
    Qt.Key.Key_Up: (0.0, 1.0),
    Qt.Key.Key_Down: (0.0, -1.0),
}


class ZoomChart(Chart):
    """Chart with zoom and pan. Subclasses give the full range, draw a section of it, and pass on the mouse: see
    :meth:`begins_move`."""

    section_changed = Signal()
    """The shown section changed: see :attr:`sections`."""

    both_axes = True
    """Whether both axes have sections, or only the X axis."""

    nearer, farther = 1 / 1.5, 1.5

    def __init__(self, name: str, colours: Colours, parent: QWidget | None = None, on_paper: bool = False) -> None:
        super().__init__(name, colours, parent, on_paper)
        self.sections: Sections = EVERYTHING
        self._moved_from: QPointF | None = None
        self._moves = (False, False)
        """Axes that the current drag moves."""

    # --- For subclasses -----------------------------------------------------------------------------------------------
    @property
    def wholes(self) -> Wholes:
        raise NotImplementedError

    def draw_section(self) -> None:
        raise NotImplementedError

    def middle(self) -> QPointF:
        """Point that keys zoom around."""
        return self.frame.area.center()

    # --- Sections ----------------------------------------------------------------------------------------------------
    @property
    def zoomed(self) -> bool:
        return self.sections != EVERYTHING

    def show_sections(self, sections: Sections) -> None:
        sections = sections if self.both_axes else (sections[0], None)
        if sections == self.sections:
            return
        self.sections = sections
        self.draw_section()
        self.refresh()
        self.section_changed.emit()

    def zoom(self, factor: float, place: QPointF | None = None) -> None:
        """Show ``factor`` times as much, with ``place`` fixed, by default :meth:`middle`; at an axis, only of it."""
        place = self.middle() if place is None else place
        scales = zip(self._scales, self._shares(place), self.wholes, axes_at(self.frame, place), strict=True)
        self._show_scales(
            scale.zoomed(factor, min(max(share, 0.0), 1.0), whole) if on else scale
            for scale, share, whole, on in scales
        )

    def move_section(self, across: float, up: float) -> None:
        """Move by shares of the axes' lengths."""
        scales = zip(self._scales, (across, up), self.wholes, strict=True)
        self._show_scales(scale.moved(by, whole) for scale, by, whole in scales)

    @property
    def _scales(self) -> Wholes:
        return self.frame.across, self.frame.up

    def _shares(self, place: QPointF) -> tuple[float, float]:
        """Position along both axes, as shares of their lengths."""
        area = self.frame.area
        return (place.x() - area.left()) / area.width(), (area.bottom() - place.y()) / area.height()

    def _show_scales(self, scales: Iterable[Scale]) -> None:
        across, up = (None if scale == whole else scale for scale, whole in zip(scales, self.wholes, strict=True))
        self.show_sections((across, up))

    def show_everything(self) -> None:
        self.show_sections(EVERYTHING)

    def bring_into_view(self, place: QPointF) -> None:
        """Move the section so that it contains ``place``, centred on it along axes where it was outside."""
        self.move_section(*(0.0 if 0.0 <= share <= 1.0 else share - 0.5 for share in self._shares(place)))

    def wheelEvent(self, event: QWheelEvent) -> None:
        notches = event.angleDelta().y() / 120
        if notches:
            self.zoom(1.2**-notches, event.position())
        event.accept()

    def begins_move(self, event: QMouseEvent, anywhere: bool = False) -> bool:
        """Whether a press starts a drag of the section. ``anywhere``: the left button drags in the plot as well."""
        axes = axes_at(self.frame, event.position())
        left = event.button() == Qt.MouseButton.LeftButton and (anywhere or not all(axes))
        if not self.zoomed or not (left or event.button() == Qt.MouseButton.MiddleButton):
            return False
        self._moved_from, self._moves = event.position(), axes
        self.show_shape(event)
        return True

    def goes_on_moving(self, event: QMouseEvent) -> bool:
        if self._moved_from is None:
            return False
        area, by = self.frame.area, event.position() - self._moved_from
        self._moved_from = event.position()
        across, up = self._moves
        self.move_section(-across * by.x() / max(1.0, area.width()), up * by.y() / max(1.0, area.height()))
        return True

    def ends_move(self, event: QMouseEvent) -> bool:
        if self._moved_from is None:
            return False
        self._moved_from = None
        self.show_shape(event)
        return True

    def show_shape(self, event: QMouseEvent) -> None:
        shape = Qt.CursorShape.ArrowCursor
        if self._moved_from is not None and all(self._moves):
            shape = Qt.CursorShape.ClosedHandCursor
        elif self.zoomed and not all(axes := axes_at(self.frame, event.position())):
            shape = Qt.CursorShape.SizeHorCursor if axes[0] else Qt.CursorShape.SizeVerCursor
        self.setCursor(shape)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not _zooms(event):
            super().keyPressEvent(event)
        elif key in _SHIFTS:
            self.move_section(*(0.2 * by for by in _SHIFTS[key]))
        elif key in NEARER:
            self.zoom(self.nearer)
        elif key == Qt.Key.Key_Minus:
            self.zoom(self.farther)
        else:
            self.show_everything()

    def _is_own(self, event: QKeyEvent) -> bool:
        return _zooms(event) or super()._is_own(event)


def _zooms(event: QKeyEvent) -> bool:
    key, modifiers = Qt.Key(event.key()), event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    if modifiers == Qt.KeyboardModifier.ControlModifier:
        return key in _SHIFTS
    if modifiers == Qt.KeyboardModifier.ShiftModifier:
        # On many keyboards plus needs Shift.
        return key in NEARER
    return not modifiers and key in _ZOOMS
