"""A painted widget with a cursor for the keyboard: what grids of cells, bars of layers and strips of tokens share.

It keeps its keys from the window's shortcuts, copies itself as text on Ctrl+C, and says what is under the cursor to
screen readers and what is under the mouse in tooltips.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QHelpEvent, QKeyEvent, QKeySequence, QPainter, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from paretone_app.shell.colours import Colours
from paretone_app.widgets.screen_readers import CHART

ACTIVATING = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)
"""Keys that act on what is under the cursor."""


class CursorCanvas(QWidget):
    """Subclasses paint, move the cursor, and say in words what is where."""

    screen_role = CHART
    own_keys: tuple[Qt.Key, ...] = ()
    """Keys without modifiers that the widget handles before shortcuts of the window."""
    own_modifiers = Qt.KeyboardModifier.KeypadModifier
    """Modifiers with which these keys are its own as well."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.colours = colours
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    # --- What subclasses say -----------------------------------------------------------------------------------------
    def cursor_text(self) -> str:
        """Value at the cursor, in words."""
        raise NotImplementedError

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        """Value under the mouse, in words, and its area of the widget; ``None`` without one."""
        raise NotImplementedError

    def as_text(self) -> str:
        """Everything as tab-separated text."""
        raise NotImplementedError

    # --- What they share ---------------------------------------------------------------------------------------------
    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self.colours = colours
        self.update()

    def refresh(self) -> None:
        """Repaint, and announce the value at the cursor to screen readers."""
        self.setAccessibleDescription(self.cursor_text())
        self.update()

    def paint_cursor(self, painter: QPainter, cell: QRectF) -> None:
        """Two rings around ``cell``, one of which contrasts with any colour; thicker with the focus."""
        focused = self.hasFocus()
        for ink, width in ((self.colours.base, 4 if focused else 2), (self.colours.text, 2 if focused else 1)):
            painter.setPen(QPen(QColor(ink), width))
            painter.drawRect(cell.adjusted(-1, -1, 0, 0))

    def copy(self) -> None:
        """Copy everything as text."""
        QGuiApplication.clipboard().setText(self.as_text())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.ShortcutOverride and self._is_own(event):
            event.accept()
            return True
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            tip = self.tip_at(QPointF(event.pos()))
            if tip is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), tip[0], self, tip[1].toAlignedRect())
            return True
        return super().event(event)

    def _is_own(self, event: QKeyEvent) -> bool:
        if event.matches(QKeySequence.StandardKey.Copy):
            return True
        return not event.modifiers() & ~self.own_modifiers and Qt.Key(event.key()) in self.own_keys
