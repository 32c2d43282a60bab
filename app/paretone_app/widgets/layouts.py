"""Layouts with the window's gaps, and areas that scroll, wrap or shrink with their content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFormLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from paretone_app.shell.theme import GAP, NEAR, set_look
from paretone_app.widgets.screen_readers import GROUP

if TYPE_CHECKING:
    _Layout = QLayout
else:
    _Layout = object


class _OnGrid(_Layout):
    """With a gap between what it holds and, as the layout of a widget, around it."""

    def __init__(self, *parent: QWidget) -> None:
        super().__init__(*parent)
        if parent:
            self.setContentsMargins(GAP, GAP, GAP, GAP)
        self.setSpacing(GAP)


class VBoxLayout(_OnGrid, QVBoxLayout):
    """One below the other."""


class HBoxLayout(_OnGrid, QHBoxLayout):
    """Side by side."""


class GridLayout(_OnGrid, QGridLayout):
    """In rows and columns."""


class FormLayout(_OnGrid, QFormLayout):
    """Labels and fields."""


class Flow(QWidget):
    """A row of widgets that wraps to the next line where the window is too narrow, as words do.

    No :class:`QLayout`: items of a layout written in Python leave Python wrappers when Qt deletes them, and these end
    other objects of the window."""

    def __init__(self, spacing: int = NEAR, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spacing = spacing
        self._row: list[QWidget] = []
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def add(self, widget: QWidget) -> None:
        """Put ``widget`` last. It stays for good; hide it while it is not needed."""
        widget.setParent(self)
        self._row.append(widget)

    def arrange(self) -> None:
        """Put everything in its place, after widgets were shown, hidden or changed."""
        self._arrange(self.width(), move=True)
        self.updateGeometry()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(width, move=False)

    def sizeHint(self) -> QSize:
        width = max((one.sizeHint().width() for one in self._shown()), default=0)
        return QSize(width, self.heightForWidth(max(width, self.width())))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._arrange(self.width(), move=True) != self.height():
            self.updateGeometry()

    def event(self, event: QEvent) -> bool:
        """What is in it may want another size once it is styled, or says something else: the layout around this keeps
        the height that it had asked for otherwise, and cuts the last line off."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.arrange()
        return super().event(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.arrange()

    def _shown(self) -> list[QWidget]:
        return [one for one in self._row if not one.isHidden()]

    def _arrange(self, width: int, move: bool) -> int:
        """Put everything into lines of this width; the height that they take."""
        x = y = line = 0
        for one in self._shown():
            hint = one.sizeHint()
            if x and x + hint.width() > width:
                x, y, line = 0, y + line + self._spacing, 0
            if move:
                one.setGeometry(QRect(x, y, min(hint.width(), width), hint.height()))
            x += hint.width() + self._spacing
            line = max(line, hint.height())
        return y + line


class Scrolled(QScrollArea):
    """``content``, as wide as there is room and as high as it needs to be."""

    screen_role = GROUP

    def __init__(self, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent, widgetResizable=True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        # Its controls have the focus, and come into view with it.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.content = content
        self.setWidget(content)

    def let_keys_scroll(self, there: bool = True) -> None:
        """Let Tab reach it, so that the arrow keys scroll it."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if there else Qt.FocusPolicy.NoFocus)
        set_look(self, "reached" if there else "")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Qt does not lay out again widgets that grew while hidden: they would be squeezed.
        layout = self.content.layout()
        if layout is not None:
            layout.invalidate()
        QCoreApplication.postEvent(self, QEvent(QEvent.Type.LayoutRequest))


_WIDTH, _HEIGHT = 22, 9
"""Heights of the font: what is left of every panel at least."""


class Shrinkable(QScrollArea):
    """Shows ``panel`` as large as there is room; if that is less than its minimum, it scrolls."""

    def __init__(self, panel: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._panel = panel
        self.setWidget(panel)
        # The window's ground is the panels' ground.
        self.viewport().setAutoFillBackground(False)
        panel.setAutoFillBackground(False)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return self._panel.minimumSizeHint().boundedTo(QSize(_WIDTH * em, _HEIGHT * em))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Qt does not lay out again what grew while it was hidden.
        QCoreApplication.postEvent(self, QEvent(QEvent.Type.LayoutRequest))

    def sizeHint(self) -> QSize:
        return self._panel.sizeHint().expandedTo(self.minimumSizeHint())
