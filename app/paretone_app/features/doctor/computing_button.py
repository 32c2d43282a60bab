"""What computes, at the end of the status bar: pressed, it opens the page of findings."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from paretone.computing import Computing
from paretone_app.shell.theme import set_look

_LEAST = 8
"""Width that it keeps where there is little room, in heights of the font."""


class ComputingButton(QToolButton):
    """As wide as its line where there is room; ends with an ellipsis where there is not."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._line = ""
        self.setAutoRaise(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.hide()

    def show_computing(self, found: Computing | None) -> None:
        """Show what computes; nothing before that is known."""
        self._line = found.line if found is not None else ""
        self.setVisible(bool(self._line))
        if found is None:
            return
        advice = f"{found.advice[0].upper()}{found.advice[1:]}\n" if found.advice else ""
        self.setToolTip(f"{found.line}\n{advice}Press for everything about this installation.")
        self.setAccessibleName(f"Computing with {found.line}")
        self.setAccessibleDescription(found.advice)
        set_look(self, "alarm" if found.idle else "quiet")
        self.updateGeometry()
        self._fit()

    @property
    def line(self) -> str:
        """All that it says, whether there is room for it or not."""
        return self._line

    def sizeHint(self) -> QSize:
        room = super().sizeHint().width() - self.fontMetrics().horizontalAdvance(self.text())
        return QSize(self.fontMetrics().horizontalAdvance(self._line) + room, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(_LEAST * self.fontMetrics().height(), super().sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = super().sizeHint().width() - self.fontMetrics().horizontalAdvance(self.text())
        wide = self.width() >= self.sizeHint().width()
        cut = self.fontMetrics().elidedText(self._line, Qt.TextElideMode.ElideRight, self.width() - room)
        self.setText(self._line if wide else cut)
