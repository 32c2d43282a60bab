"""The tour's card and the frame around what it speaks of. Both lie over the window and move nothing in it."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QGroupBox, QPushButton, QWidget

from paretone_app.shell.theme import BROAD, GAP, TIGHT, WIDE, set_look
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout


def placed(card: QSize, target: QRect, room: QRect, clear: QRect | None = None) -> QPoint:
    """Upper left corner of a ``card`` within ``room``, near ``target`` and covering as little as possible of that and
    of what is around it, ``clear``."""
    clear = target if clear is None else clear.united(target)
    rows = (target.top(), target.center().y() - card.height() // 2, target.bottom() + 1 - card.height())
    columns = (target.left(), target.center().x() - card.width() // 2, target.right() + 1 - card.width())
    sides = [(x, y) for x in (clear.right() + WIDE, clear.left() - WIDE - card.width()) for y in rows]
    ends = [(x, y) for y in (clear.bottom() + WIDE, clear.top() - WIDE - card.height()) for x in columns]
    most = QPoint(room.right() + 1 - card.width(), room.bottom() + 1 - card.height())

    def inside(x: int, y: int) -> QRect:
        return QRect(QPoint(max(min(x, most.x()), room.left()), max(min(y, most.y()), room.top())), card)

    corners = [(x, y) for x in (room.left(), most.x()) for y in (most.y(), room.top())]
    found = [inside(x, y) for x, y in (*sides, *ends, *corners)]

    def cost(one: QRect) -> tuple[int, int]:
        covered = one.intersected(clear)
        return covered.width() * covered.height(), (one.center() - target.center()).manhattanLength()

    return min(found, key=cost).topLeft()


def in_a_corner(card: QSize, room: QRect) -> QPoint:
    """The lower right corner of ``room``, where there is nothing to point at."""
    return QPoint(room.right() + 1 - card.width() - WIDE, room.bottom() + 1 - card.height() - WIDE)


_WIDTH = 24
"""Width of the card in heights of the font."""
_AROUND = 5
"""Pixels between a control and its frame."""


@dataclass(frozen=True)
class TourActions:
    end: Action
    back: Action
    help: Action
    """Does what the stop asks."""
    next: Action


class TourCard(QGroupBox):
    """One stop: a title, a sentence or two, what to press, and the buttons."""

    def __init__(self, can: TourActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.can = can
        self.setProperty("look", "tour")
        self._count = build.label(look="muted", name="Stop of the tour")
        self._title = build.words("heading", name="Title of the stop")
        self._text = build.words(name="About this stop")
        self._hint = build.words(name="What to press", rich=True)
        self.end_button = ActionButton(can.end, look="link")
        self.back_button, self.help_button, self.next_button = (
            ActionButton(one) for one in (can.back, can.help, can.next)
        )
        head = HBoxLayout()
        head.addWidget(self._count, 1)
        head.addWidget(self.end_button)
        buttons = HBoxLayout()
        buttons.addWidget(self.back_button)
        buttons.addStretch(1)
        for one in (self.help_button, self.next_button):
            buttons.addWidget(one)
        column = VBoxLayout(self)
        column.setContentsMargins(BROAD, GAP, BROAD, WIDE)
        column.setSpacing(GAP)
        column.addLayout(head)
        for words in (self._title, self._text, self._hint):
            column.addWidget(words)
        column.addSpacing(TIGHT)
        column.addLayout(buttons)
        self.hide()

    @property
    def said(self) -> str:
        """Everything that the card says, without its buttons."""
        return " ".join(one.text() for one in (self._title, self._text, self._hint) if one.text())

    @property
    def hint(self) -> str:
        """What to press, as shown."""
        return self._hint.text()

    def show_stop(self, number: int, count: int, title: str, text: str) -> None:
        """Show another stop; :meth:`show_part` says what to do there."""
        self._count.setText(f"Stop {number} of {count}")
        self._title.setText(title)
        self._text.setText(text)
        self.setAccessibleName(f"Tour, stop {number} of {count}: {title}")
        self.setAccessibleDescription(text)
        self.can.back.set_reason("" if number > 1 else "This is the first stop.")

    def show_part(self, hint: str, help_text: str, why_no_help: str, done: bool, last: bool) -> None:
        """Show what to do next. ``help_text``: title of the button that does it, none where it is empty."""
        changed = hint != self._hint.text() or done != (self.next_button.property("look") == "primary")
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        if not help_text and self.help_button.hasFocus():
            self.next_button.setFocus(Qt.FocusReason.OtherFocusReason)
        self.help_button.setVisible(bool(help_text))
        self.can.help.setText(help_text)
        self.can.help.set_reason(why_no_help)
        self.can.next.setText("Finish" if last else "Next" if done else "Skip")
        self.can.next.set_tip("End the tour" if last else "Go to the next stop")
        set_look(self.next_button, "primary" if done else "")
        said = self.said
        for button in (self.help_button, self.next_button):
            button.setAccessibleDescription(said)
        if changed:
            self.fit()

    def fit(self) -> None:
        """Be as high as the words need."""
        width = _WIDTH * self.fontMetrics().height()
        layout = self.layout()
        if layout is not None:
            layout.activate()
            self.resize(width, layout.totalHeightForWidth(width))

    def take_focus(self) -> None:
        """Put the focus on what is pressed next."""
        button = self.help_button if self.help_button.isVisible() and self.help_button.isEnabled() else self.next_button
        self.setFocusProxy(button)
        button.setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return presses the button with the focus."""
        focus = self.focusWidget()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and isinstance(focus, QPushButton):
            focus.click()
        else:
            super().keyPressEvent(event)


class TourFrame(QWidget):
    """A frame around a control, through which the mouse goes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()

    def show_around(self, target: QRect, room: QRect) -> None:
        """Be around ``target``, within ``room``."""
        self.setGeometry(target.adjusted(-_AROUND, -_AROUND, _AROUND, _AROUND).intersected(room))
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            accent = self.palette().color(QPalette.ColorRole.Accent)
            halo = QColor(accent)
            halo.setAlpha(60)
            for colour, width in ((halo, 5.0), (accent, 2.0)):
                painter.setPen(QPen(colour, width))
                inside = width / 2 + (0.0 if width > 2 else 1.5)
                painter.drawRoundedRect(QRectF(self.rect()).adjusted(inside, inside, -inside, -inside), 7, 7)
