"""A column of controls that scrolls up and down if it does not fit."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from paretone_app.shell.theme import set_look
from paretone_app.widgets.screen_readers import GROUP


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
