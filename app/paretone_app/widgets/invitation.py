"""Empty views: a sentence on what they will show and what that takes, and the button that fills them."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QLabel, QPushButton, QStackedWidget, QWidget

from paretone_app.shell.theme import BROAD, set_look
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout

_WIDEST = 36
"""Font heights: longest line of the sentence."""


class EmptyState(QWidget):
    def __init__(self, text: str = "", in_a_line: bool = False) -> None:
        """``in_a_line``: short text and button side by side, for a low view."""
        super().__init__()
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
        self._row = HBoxLayout()
        if in_a_line:
            self.setBackgroundRole(QPalette.ColorRole.Base)
            self.setAutoFillBackground(True)
            build.fill(HBoxLayout(self), [0, self.words, self._row, 0], (BROAD, 0, BROAD, 0))
        else:
            self.words.setMaximumWidth(_WIDEST * self.fontMetrics().height())
            build.fill(self._row, [0, 0])
            across = build.fill(HBoxLayout(), [0, (self.words, 1), 0])
            build.fill(VBoxLayout(self), [0, across, self._row, 0], (BROAD,) * 4)

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


class Invited(QStackedWidget):
    """Shows either an invitation or, once available, the panel's content."""

    def __init__(self, content: QWidget, text: str = "", in_a_line: bool = False) -> None:
        super().__init__()
        self._doubles: list[ActionButton] = []
        self.empty = EmptyState(in_a_line=in_a_line)
        self.invitation = self.empty.words
        for one in (self.empty, content):
            self.addWidget(_Page(one))
        self.invite(text)

    def invite(self, text: str, filling: bool = False) -> None:
        """Invite with this text; ``filling``: only the text, because the panel is being filled."""
        self.empty.filling = filling
        for button in self.empty.buttons:
            button.setVisible(not filling)
        self.invitation.setText(text)
        self.invitation.setAccessibleName(text)
        # Tab stop, so that screen readers read it.
        self.invitation.setFocusPolicy(Qt.FocusPolicy.TabFocus if text else Qt.FocusPolicy.NoFocus)

    def offer(self, does: Action, text: str | None = None, double: ActionButton | None = None) -> ActionButton:
        """Add a button that fills the panel; ``text`` replaces that of the action. ``double``: the panel's own button
        for it, the primary one only once the panel is filled."""
        if double is not None:
            self._doubles.append(double)
        return self.empty.offer(does, text)

    @property
    def is_empty(self) -> bool:
        return self.currentIndex() == 0

    def show_content(self, there: bool) -> None:
        if self.currentIndex() != int(there):
            self.setCurrentIndex(int(there))
            for one in self._doubles:
                set_look(one, "primary" if there else "")
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
