"""The banner: one sentence about a problem, above the panels. It never blocks and never steals the focus."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QToolButton,
    QWidget,
)


class Banner(QFrame):
    """Hidden until there is something to say. ``level`` is ``info``, ``warning`` or ``error``."""

    dismissed = Signal()
    """Nothing is shown any more."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "banner")
        self._text = QLabel(wordWrap=True)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._text.setAccessibleName("Message")
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        close = QToolButton(text="✕", toolTip="Dismiss this message")
        close.setProperty("look", "quiet")
        close.setAccessibleName("Dismiss the message")
        close.clicked.connect(self.dismiss)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 4, 6, 4)
        layout.addWidget(self._text, 1)
        layout.addWidget(close)
        self.hide()

    @property
    def text(self) -> str:
        """The sentence shown, or ``""``."""
        return self._text.text()

    @property
    def level(self) -> str:
        """The level of the sentence shown."""
        return str(self.property("level"))

    def say(self, sentence: str, level: str = "error") -> None:
        """Show ``sentence``."""
        self.setProperty("level", level)
        self.style().unpolish(self)
        self.style().polish(self)
        self._text.setText(sentence)
        self._text.setAccessibleDescription(sentence)
        self.show()
        self.setFixedHeight(self.layout().heightForWidth(self.width()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Be as high as the wrapped sentence needs: tool bars do not ask for a height that depends on the width."""
        super().resizeEvent(event)
        height = self.layout().heightForWidth(self.width())
        if height > 0 and height != self.height():
            self.setFixedHeight(height)

    @Slot()
    def dismiss(self) -> None:
        """Hide the banner."""
        self._text.clear()
        self.hide()
        self.dismissed.emit()
