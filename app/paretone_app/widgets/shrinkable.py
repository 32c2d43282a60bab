"""A panel that scrolls where it has less room than it needs, so that the window may be small."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QSize, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

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
