"""The banner: one sentence or question, laid over the panels. It never blocks, never steals the focus and moves
nothing."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from app.shell.metrics import GAP, NEAR
from app.widgets.cross_button import cross_button
from app.widgets.layouts import HBoxLayout


class Banner(QFrame):
    """Hidden until there is something to say. ``level`` is ``info``, ``warning`` or ``error``."""

    dismissed = Signal()
    """Nothing is shown any more."""
    chosen = Signal(str)
    """The answer to the question shown; the banner is gone by then."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "banner")
        self._text = QLabel(wordWrap=True)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._text.setAccessibleName("Message")
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        close = cross_button("Dismiss the message", "Dismiss this message")
        close.clicked.connect(self.dismiss)
        self._row = layout = HBoxLayout(self)
        layout.setContentsMargins(GAP, NEAR, NEAR, NEAR)
        self._answers = HBoxLayout()
        self.answers: tuple[QPushButton, ...] = ()
        """The buttons that answer the question shown, in the order of its choices."""
        layout.addWidget(self._text, 1)
        layout.addLayout(self._answers)
        layout.addWidget(close)
        self.hide()

    @property
    def line_height(self) -> int:
        """Height of a sentence of one line, in pixels."""
        margins = self._row.contentsMargins()
        return max(self.fontMetrics().height(), self._row.minimumSize().height() - margins.top() - margins.bottom()) + (
            margins.top() + margins.bottom()
        )

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
        self._offer(())
        self._show(sentence, level)

    def ask(self, question: str, choices: Sequence[str], level: str = "warning") -> None:
        """Show ``question`` with a button for each of ``choices``; :attr:`chosen` carries the one that is pressed."""
        self._offer(choices)
        self._show(question, level)

    def _offer(self, choices: Sequence[str]) -> None:
        for button in self.answers:
            self._answers.removeWidget(button)
            button.hide()
            button.deleteLater()
        self.answers = tuple(QPushButton(choice) for choice in choices)
        self.setFocusProxy(self.answers[0] if self.answers else self._text)
        for button, choice in zip(self.answers, choices, strict=True):
            button.setAccessibleName(f"Choose {choice}")
            button.clicked.connect(lambda _=False, one=choice: self._answer(one))
            self._answers.addWidget(button)

    def _answer(self, choice: str) -> None:
        self.dismiss()
        self.chosen.emit(choice)

    def _show(self, sentence: str, level: str) -> None:
        self.setProperty("level", level)
        self.style().unpolish(self)
        self.style().polish(self)
        self._text.setText(sentence)
        self._text.setAccessibleDescription(sentence)
        self.show()
        self._fit()
        # Qt does not lay out anew what changes its height while it comes into sight.
        self._row.invalidate()
        self._row.activate()

    def focus(self) -> None:
        """Put the focus on the first answer, or on the sentence."""
        self.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Be as high as the wrapped sentence needs."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        # With the frame, which the row itself does not count.
        height = self._row.totalHeightForWidth(self.width())
        if height > 0 and height != self.height():
            self.setFixedHeight(height)

    @Slot()
    def dismiss(self) -> None:
        """Hide the banner."""
        self._offer(())
        self._text.clear()
        self.hide()
        self.dismissed.emit()
