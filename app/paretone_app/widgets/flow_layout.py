"""A row of widgets that wraps to the next line where the window is too narrow, as words do.

No :class:`QLayout`: items of a layout written in Python leave Python wrappers when Qt deletes them, and these end other
objects of the window.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from paretone_app.shell.metrics import NEAR


class Flow(QWidget):
    """As wide as there is room for; its height follows."""

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
