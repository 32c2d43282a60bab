"""Empty views: a faint sketch of the future content, a sentence, and the button that fills the view."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPalette
from PySide6.QtWidgets import QLabel, QPushButton, QStackedWidget, QWidget

from paretone_app.shell.theme import BROAD
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.sketching import Sketch, ink

_AROUND = BROAD
"""Pixels between text and sketch."""


class EmptyState(QWidget):
    def __init__(self, sketch: Sketch | None = None, text: str = "", in_a_line: bool = False) -> None:
        """``in_a_line``: short text and button side by side, for a low view."""
        super().__init__()
        self.sketch = sketch
        self._in_a_line = in_a_line
        self.words = QLabel(text, wordWrap=not in_a_line)
        self.words.setAccessibleName(text)
        if text:
            self.words.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.words.setProperty("look", "reached")
        self.buttons: list[QPushButton] = []
        self.filling = False
        """Whether the view is being filled; then only the text is shown."""
        self._middle = HBoxLayout(self) if in_a_line else VBoxLayout(self)
        high = 0 if in_a_line else _AROUND
        self._middle.setContentsMargins(_AROUND, high, _AROUND, high)
        self._middle.addStretch(1)
        self._middle.addWidget(self.words)
        self._row = HBoxLayout()
        if not in_a_line:
            self._row.addStretch(1)
            self._row.addStretch(1)
        self._middle.addLayout(self._row)
        self._middle.addStretch(1)

    def add(self, button: QPushButton) -> None:
        """Add ``button`` after the text; a primary one comes first."""
        self.buttons.append(button)
        first = 0 if self._in_a_line else 1
        place = first if button.property("look") == "primary" else first + len(self.buttons) - 1
        self._row.insertWidget(place, button, 0, Qt.AlignmentFlag.AlignVCenter)

    def offer(self, does: Action, text: str | None = None) -> ActionButton:
        look = "" if any(one.property("look") == "primary" for one in self.buttons) else "primary"
        made = ActionButton(does, text, look, letter=False)
        made.instead = self.words
        self.add(made)
        return made

    def set_filling(self, filling: bool) -> None:
        """Show only the text while the view is being filled."""
        self.filling = filling
        for button in self.buttons:
            button.setVisible(not filling)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.sketch is None or self.filling:
            return
        ground = QPalette.ColorRole.Base if self._in_a_line else QPalette.ColorRole.Window
        with QPainter(self) as painter:
            if self._in_a_line:
                painter.fillRect(self.rect(), self.palette().color(ground))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            edge = float(self.fontMetrics().height())
            self.sketch(painter, QRectF(self.rect()).adjusted(edge, edge, -edge, -edge), ink(self.palette()))
            plate = QPainterPath()
            plate.addRoundedRect(self._plate, 10, 10)
            painter.fillPath(plate, self.palette().color(ground))

    @property
    def _plate(self) -> QRectF:
        """Background of text and buttons, for legibility."""
        metrics, words = self.words.fontMetrics(), self.words.geometry()
        text = metrics.boundingRect(
            words, int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap), self.words.text()
        )
        for button in self.buttons:
            if not button.isHidden():
                text = text.united(button.geometry())
        return QRectF(text.adjusted(-_AROUND, -_AROUND, _AROUND, _AROUND))


class Invited(QStackedWidget):
    """Shows either an invitation or, once available, the panel's content."""

    def __init__(self, content: QWidget, text: str = "", sketch: Sketch | None = None, in_a_line: bool = False) -> None:
        super().__init__()
        self.empty = EmptyState(sketch, in_a_line=in_a_line)
        self.invitation = self.empty.words
        for one in (self.empty, content):
            self.addWidget(_Page(one))
        self.invite(text)

    def invite(self, text: str, filling: bool = False) -> None:
        """Invite with this text; ``filling``: only the text, because the panel is being filled."""
        self.empty.set_filling(filling)
        self.invitation.setText(text)
        self.invitation.setAccessibleName(text)
        # Tab stop, so that screen readers read it.
        self.invitation.setFocusPolicy(Qt.FocusPolicy.TabFocus if text else Qt.FocusPolicy.NoFocus)
        self.empty.update()

    def offer(self, does: Action, text: str | None = None) -> ActionButton:
        """Add a button that fills the panel; ``text`` replaces that of the action."""
        return self.empty.offer(does, text)

    @property
    def is_empty(self) -> bool:
        return self.currentIndex() == 0

    def show_content(self, there: bool) -> None:
        if self.currentIndex() != int(there):
            self.setCurrentIndex(int(there))
            self.updateGeometry()


class _Page(QWidget):
    """Page with the least height of its content, where Qt would ask for the labels' preferred height; 0 if hidden."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._content = content
        build.fill(VBoxLayout(self), [content])

    def minimumSizeHint(self) -> QSize:
        least = super().minimumSizeHint()
        return QSize(least.width(), 0) if self.isHidden() else least

    def heightForWidth(self, width: int) -> int:
        if self.isHidden():
            return 0
        layout = self._content.layout()
        if layout is not None and layout.hasHeightForWidth():
            return layout.totalMinimumHeightForWidth(width)
        return self._content.heightForWidth(width)
