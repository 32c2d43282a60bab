"""What is to the left of the canvas: who speaks in each lane, with figures and a note, and which lanes are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QIcon, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLineEdit, QPushButton, QSizePolicy, QToolButton, QWidget

from paretone_app.shell.colours import ON_GROUND, Colours, ground
from paretone_app.shell.theme import NEAR, SMALL, STRONG, TIGHT, pixmap, text_font
from paretone_app.widgets import build
from paretone_app.widgets.action import Action
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.screen_readers import GROUP


class LaneHead(QWidget):
    """Who speaks in a lane. Its actions are its menu, and have keys while it has the focus."""

    screen_role = GROUP

    noted = Signal(str)
    """Another note was written."""

    def __init__(self, letter: str, colours: Colours, do: Callable[[str], object]) -> None:
        """``do`` is called with ``hear``, ``pin``, ``subtract``, ``up``, ``down`` or ``remove``."""
        super().__init__()
        self.letter, self._colours, self._heard, self._pinned = letter, colours, False, False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.actions_of = {
            name: self._action(text, tip, keys, partial(do, name))
            for name, text, tip, keys in (
                ("hear", "Hear", "Switch to this lane", "Return"),
                ("pin", "Pin as reference", "Differences, pitch and length are compared with this lane", "P"),
                ("subtract", "Subtract from reference", "Show the reference minus this lane", "D"),
                ("up", "Move up", "Exchange it with the lane above", "Alt+Up"),
                ("down", "Move down", "Exchange it with the lane below", "Alt+Down"),
                ("remove", "Remove from lanes", "The take stays in Takes", "Del"),
            )
        }
        self._action("Write note", "Words with # are tags", "T", lambda: self.note.setFocus())
        self.badge = build.named(QPushButton(letter), f"Hear lane {letter}")
        self.badge.setCheckable(True)
        self.badge.clicked.connect(lambda: do("hear"))
        self.badge.setFixedWidth(2 * self.fontMetrics().height())
        self.title = build.label(look="title", yielding=True)
        self.pin = build.named(QToolButton(), f"Pin lane {letter} as the reference")
        self.pin.setCheckable(True)
        self.pin.clicked.connect(lambda: do("pin"))
        self.pin.setProperty("look", "quiet")
        self.remove = build.cross_button(f"Remove lane {letter}", "Remove from lanes (Del); the take stays in Takes")
        self.remove.clicked.connect(lambda: do("remove"))
        for button in (self.pin, self.remove):
            button.setFixedWidth(round(1.4 * self.fontMetrics().height()))
        for one in (self.badge, self.pin, self.remove):
            one.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Each has a key of the head.
        self.facts = build.words("muted")
        self.facts.setFont(text_font(self.font(), SMALL))
        self.facts.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.facts.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.note = build.named(QLineEdit(placeholderText="Note, #tags", frame=False), f"Note on lane {letter}")
        self.note.setFont(text_font(self.font(), SMALL))
        self.note.setToolTip("Kept with the take; words with # are tags (T)")
        self.note.editingFinished.connect(self._tell_note)
        head = build.row(self.badge, (self.title, 1), self.pin, self.remove)
        build.fill(VBoxLayout(self), (head, (self.facts, 1), self.note), (NEAR, TIGHT, NEAR, TIGHT)).setSpacing(TIGHT)
        self.setMinimumHeight(head.sizeHint().height() + 4 * self.fontMetrics().height())
        self.set_colours(colours)

    def _action(self, text: str, tip: str, keys: str, do: Callable[[], object]) -> Action:
        made = Action(text, tip, keys, self)
        made.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        made.triggered.connect(lambda: do())
        self.addAction(made)
        return made

    def show_take(self, title: str, facts: Sequence[str], note: str, detail: str) -> None:
        """``title`` ``""``: there is no take."""
        self.title.setText(title or "No take")
        # Lines break between facts only.
        self.facts.setText(" · ".join(one.replace(" ", "\u00a0") for one in facts))
        whole = "\n".join((title or "No take", *facts, *filter(None, (detail,))))
        for one in (self.title, self.facts):
            one.setToolTip(whole)
        if not self.note.hasFocus() and note != self.note.text():
            self.note.setText(note)
        for one in (self.note, self.pin, self.remove, self.badge):
            one.setEnabled(bool(title))
        for action in self.actions_of.values():
            action.setEnabled(bool(title))
        self.setAccessibleName(f"Lane {self.letter}: {title or 'no take'}")
        said = [*facts, f"Note: {note}" if note else "", detail, "Reference" if self._pinned else ""]
        self.setAccessibleDescription(". ".join(filter(None, said)))

    def show_state(self, heard: bool, pinned: bool) -> None:
        self._heard, self._pinned = heard, pinned
        self.badge.setChecked(heard)
        self.pin.setChecked(pinned)
        colour = self._colours.accent if pinned else self._colours.muted
        self.pin.setIcon(QIcon(pixmap("pin", colour, self.fontMetrics().height(), self.devicePixelRatioF())))
        self.pin.setToolTip("Differences refer to this lane" if pinned else "Pin as the reference of differences (P)")

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        fill = lane_colour(self.letter, colours)
        pressed = ground(fill)
        self.badge.setStyleSheet(
            f"QPushButton {{ font-weight: {STRONG}; color: {fill}; padding: {TIGHT}px; }}"
            f"QPushButton:disabled {{ color: {colours.disabled}; }}"
            f"QPushButton:checked {{ background: {pressed}; border-color: {pressed}; color: {ON_GROUND}; }}"
        )
        self.show_state(self._heard, self._pinned)

    def _tell_note(self) -> None:
        if self.note.isModified():
            self.note.setModified(False)
            self.noted.emit(self.note.text())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and Down go to the neighbouring lanes."""
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        column = self.parentWidget()
        if step is None or event.modifiers() or column is None:
            super().keyPressEvent(event)
            return
        heads = sorted(column.findChildren(LaneHead), key=lambda one: one.y())
        heads[max(0, min(heads.index(self) + step, len(heads) - 1))].setFocus(Qt.FocusReason.OtherFocusReason)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.hasFocus():
            with QPainter(self) as painter:
                painter.setPen(QPen(self.palette().color(self.palette().ColorRole.Highlight), 2))
                painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), 4, 4)


class DifferenceHead(QWidget):
    """Which lane is subtracted from the reference."""

    screen_role = GROUP

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Difference")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self._reference = build.label(look="title", name="Reference")
        self._other = build.combo("Lane that is subtracted")
        self._other.activated.connect(lambda _: self.chosen.emit(self._other.currentData()))
        self.said = build.words("muted", name="Why there is no difference")
        self.said.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.said.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        parts = build.row(self._reference, self._other, 1), (self.said, 1)
        build.fill(VBoxLayout(self), parts, (NEAR, TIGHT, NEAR, TIGHT)).setSpacing(TIGHT)
        self.setMinimumHeight(self._other.sizeHint().height() + 3 * self.fontMetrics().height())

    def show_pair(self, reference: str, others: Sequence[tuple[str, int]], other: int, reason: str) -> None:
        self._reference.setText(f"{reference} −")
        build.offer(self._other, others, other)
        self.said.setText(reason)
        self.said.setToolTip(reason)


def lane_colour(letter: str, colours: Colours) -> str:
    return {"A": colours.baseline, "B": colours.accelerated}.get(letter, colours.text)
