"""The messages: cards in the lower right corner, over the panels. They never block, take the focus or move anything."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QPushButton, QScrollArea, QSizePolicy, QWidget
from shiboken6 import isValid

from paretone_app.shell.theme import GAP, NEAR
from paretone_app.widgets.build import cross_button
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout

INFO, WARNING, ERROR = "info", "warning", "error"
MOST = 3
"""Messages shown at a time. More push the passing ones out; lasting ones wait for room."""
_WIDTH, _LEAST_WIDTH = 34, 18
"""Width of a card in font heights: usual, and least."""
LASTING = {INFO: 8.0, WARNING: 20.0}
"""Seconds that a message is shown in addition to its reading time; errors stay."""
_TICK_MILLISECONDS = 250


@dataclass(frozen=True)
class Message:
    sentence: str
    level: str
    choices: tuple[str, ...] = ()
    answered: Callable[[str], object] = lambda choice: None
    at_risk: bool = False
    """Whether data may be lost."""

    @property
    def stays(self) -> bool:
        """Until the user dismisses or answers it."""
        return self.at_risk or bool(self.choices) or self.level == ERROR


class Card(QFrame):
    """One message; Escape dismisses it."""

    dismissed = Signal()
    chosen = Signal(str)

    def __init__(self, message: Message, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self.setProperty("look", "banner")
        self.setProperty("level", message.level)
        self.label = QLabel(message.sentence, wordWrap=True)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.label.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.label.setAccessibleName("Message")
        self.label.setAccessibleDescription(message.sentence)
        self._scrolled = QScrollArea(widgetResizable=True)
        self._scrolled.setFrameShape(QFrame.Shape.NoFrame)
        self._scrolled.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scrolled.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scrolled.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._scrolled.setWidget(self.label)
        for one in (self._scrolled.viewport(), self.label):
            one.setAutoFillBackground(False)
        self.close_button = cross_button("Dismiss the message", "Dismiss this message (Esc)")
        self.close_button.clicked.connect(self.dismissed)
        self.answers = tuple(QPushButton(choice) for choice in message.choices)
        self._head = HBoxLayout()
        self._head.addWidget(self._scrolled, 1)
        self._head.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        self._column = VBoxLayout(self)
        self._column.setContentsMargins(GAP, NEAR, NEAR, NEAR)
        self._column.addLayout(self._head)
        if self.answers:
            row = HBoxLayout()
            row.addStretch(1)
            for button, choice in zip(self.answers, message.choices, strict=True):
                button.setAccessibleName(f"Choose {choice}")
                button.clicked.connect(lambda _=False, one=choice: self.chosen.emit(one))
                row.addWidget(button)
            self._column.addLayout(row)
        self.setFocusProxy(self.answers[0] if self.answers else self.label)

    def fit(self, width: int, most: int) -> int:
        """Fit the height to the wrapped sentence, up to ``most``; returns the height."""
        self.ensurePolished()
        self.setFixedWidth(width)
        inside, margins = self.contentsRect(), self._column.contentsMargins()
        close = self.close_button.sizeHint()
        room = inside.width() - margins.left() - margins.right() - self._head.spacing() - close.width()
        answers = max((one.sizeHint().height() + self._column.spacing() for one in self.answers), default=0)
        around = self.height() - inside.height() + margins.top() + margins.bottom() + answers
        text = max(close.height(), min(self.label.heightForWidth(room), most - around))
        self._scrolled.setFixedHeight(text)
        self.setFixedHeight(around + text)
        return around + text

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.dismissed.emit()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Take Escape before it cancels a job."""
        is_asked = event.type() is QEvent.Type.ShortcutOverride
        if is_asked and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            return True
        return super().event(event)


class Banner(QWidget):
    """The cards, the newest at the bottom; hidden while empty."""

    expired = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._room = QRect()
        self._cards: list[Card] = []
        self._before: QWidget | None = None
        """Widget with the focus before a card took it."""
        self._left: dict[Card, float] = {}
        """Remaining seconds of passing cards."""
        self._clock = QTimer(self, interval=_TICK_MILLISECONDS)
        self._clock.timeout.connect(self._pass_time)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._note_focus)
        self.hide()

    @property
    def cards(self) -> tuple[Card, ...]:
        return tuple(one for one in self._cards if not one.isHidden())

    @property
    def text(self) -> str:
        return self._cards[-1].message.sentence if self._cards else ""

    @property
    def answers(self) -> tuple[QPushButton, ...]:
        return self._cards[-1].answers if self._cards else ()

    @property
    def waits(self) -> bool:
        return any(one.message.stays for one in self._cards)

    def show_message(self, message: Message) -> None:
        """Show ``message`` on top and remove an earlier one with the same sentence."""
        same = [one for one in self._cards if one.message.sentence == message.sentence]
        if not message.choices and any(one.message.choices for one in same):
            return  # A failed job may say what a question says already.
        for one in same:
            self._remove(one)
        card = Card(message, self)
        card.dismissed.connect(lambda: self.dismiss(card))
        card.chosen.connect(lambda answer: self._answer(card, answer))
        self._cards.append(card)
        if not message.stays:
            self._left[card] = LASTING[message.level] + len(message.sentence) / 15  # A slow reader's letters a second.
        passing = [one for one in self._cards if not one.message.stays]
        for one in passing[: max(0, len(self._cards) - MOST)]:
            if one is not card:
                self._expire(one)
        self._arrange()
        self._clock.start()

    def dismiss(self, card: Card | None = None) -> None:
        """Remove a card, by default the newest."""
        card = card or (self._cards[-1] if self._cards else None)
        if card is not None and card in self._cards:
            self._take_away(card)

    def withdraw(self, question: Message | None) -> None:
        """Remove the card of ``question``, if it is shown."""
        for card in [one for one in self._cards if one.message is question]:
            self._take_away(card)

    def dismiss_newest(self) -> bool:
        """Remove the newest card that neither asks nor reports data at risk; returns whether one was removed."""
        told = [one for one in self.cards if not one.message.choices and not one.message.at_risk]
        if told:
            self.dismiss(told[-1])
        return bool(told)

    def pass_by(self) -> None:
        for one in [one for one in self._cards if not one.message.stays]:
            self._expire(one)
        self._arrange()

    def clear(self) -> None:
        for one in list(self._cards):
            self._remove(one)
        self._arrange()

    def _answer(self, card: Card, answer: str) -> None:
        if card in self._cards:
            self._take_away(card)
            card.message.answered(answer)

    def _take_away(self, card: Card) -> None:
        focus, before = QApplication.focusWidget(), self._before
        had_focus = focus is not None and card.isAncestorOf(focus)
        self._remove(card)
        self._arrange()
        if not had_focus:
            return
        self._before = before
        if self._cards:
            self._cards[-1].setFocus(Qt.FocusReason.OtherFocusReason)
            self._before = before  # Qt may have changed it.
        elif self._before is not None and isValid(self._before) and self._before.isVisible():
            self._before.setFocus(Qt.FocusReason.OtherFocusReason)

    def _expire(self, card: Card) -> None:
        self._remove(card)
        self.expired.emit()

    def _remove(self, card: Card) -> None:
        self._cards.remove(card)
        self._left.pop(card, None)
        card.hide()
        card.deleteLater()

    def _pass_time(self) -> None:
        """Count down; pause while the pointer or the focus is on a card."""
        focus = QApplication.focusWidget()
        if not self._left:
            self._clock.stop()
        if self.underMouse() or (focus is not None and self.isAncestorOf(focus)):
            return
        for card in list(self._left):
            self._left[card] -= _TICK_MILLISECONDS / 1000
            if self._left[card] <= 0:
                self._expire(card)
                self._arrange()

    def place(self, room: QRect) -> None:
        self._room = room
        self._arrange()

    def _arrange(self) -> None:
        seen = self._cards[-MOST:]
        em = self.fontMetrics().height()
        width = max(min(_WIDTH * em, self._room.width()), min(_LEAST_WIDTH * em, self._room.width()))
        below = 0
        for card in self._cards:
            card.setVisible(card in seen)
        self.setFocusProxy(seen[-1] if seen else None)  # type: ignore[arg-type]  # As Qt documents it.
        most = max(6 * em, (self._room.height() - NEAR * len(seen)) // max(1, len(seen)))
        heights = [card.fit(width, most) for card in seen]
        for card, height in zip(seen, heights, strict=True):
            card.move(0, below)
            below += height + NEAR
        self.setVisible(bool(seen))
        height = max(0, below - NEAR)
        self.setGeometry(self._room.right() + 1 - width, self._room.bottom() + 1 - height, width, height)
        self.raise_()

    def focus(self) -> None:
        """Put the focus on the first answer of the newest message, or on its sentence."""
        if self._cards:
            self._cards[-1].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _note_focus(self, before: QWidget | None, now: QWidget | None) -> None:
        if now is not None and before is not None and self.isAncestorOf(now) and not self.isAncestorOf(before):
            self._before = before
