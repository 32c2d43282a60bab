"""The tour: its course through the stops, its card and frame, and its presenter, which detects finished parts."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QColor, QKeyEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QAbstractButton, QApplication, QGroupBox, QPushButton, QToolBar, QToolButton, QWidget
from shiboken6 import isValid

from paretone_app.features.presenter import Part, Presenter, Services
from paretone_app.shell.entries import TourStop
from paretone_app.shell.theme import BROAD, GAP, TIGHT, WIDE, set_look
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.layouts import VBoxLayout, bring_into_view
from paretone_app.widgets.screen_readers import announce


class Course:
    """Position in the tour. A finished part counts until the tour ends, even if undone."""

    def __init__(self, stops: Sequence[TourStop], parts: Callable[[TourStop], Sequence[Part]]) -> None:
        """``parts`` is called when a stop is first reached."""
        self.stops = tuple(stops)
        self._parts_of = parts
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._done: dict[str, int] = {}
        """Number of finished parts, by the stop's name."""
        self._at = 0
        self._reach()

    @property
    def stop(self) -> TourStop:
        return self.stops[self._at]

    @property
    def number(self) -> int:
        return self._at + 1

    @property
    def is_last(self) -> bool:
        return self.number == len(self.stops)

    @property
    def part(self) -> Part | None:
        """Next part of the stop; ``None`` once all are done."""
        return next(iter(self._parts[self.stop.name][self._done[self.stop.name] :]), None)

    @property
    def last_part(self) -> Part | None:
        """Part to point at once all are done."""
        return next(iter(self._parts[self.stop.name][-1:]), None)

    def look(self) -> bool:
        """Record finished parts; return whether any is new."""
        name, before = self.stop.name, self._done[self.stop.name]
        while (part := self.part) is not None and part.done():
            self._done[name] += 1
        return self._done[name] > before

    def go(self, by: int) -> None:
        """Move by ``by`` stops, clamped to the ends."""
        self._at = min(max(self._at + by, 0), len(self.stops) - 1)
        self._reach()

    def _reach(self) -> None:
        if (name := self.stop.name) not in self._parts:
            self._parts[name] = tuple(self._parts_of(self.stop))
            self._done[name] = 0
        self.look()


def placed(card: QSize, target: QRect, room: QRect, clear: QRect | None = None) -> QPoint:
    """Top-left corner of ``card`` in ``room``: near ``target``, covering as little as possible of it and ``clear``."""
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


_AROUND = 5
"""Pixels between a control and its frame."""


class TourCard(QGroupBox):
    """One stop: a title, a sentence or two, what to press, and the buttons."""

    def __init__(self, end: Action, back: Action, help_: Action, next_: Action, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("look", "tour")
        self._count = build.label(look="muted", name="Stop of the tour")
        self._title = build.words("heading", name="Title of the stop")
        self._text = build.words(name="About this stop")
        self.hint = build.words(name="What to press", rich=True)
        self.back_button, self.help_button, self.next_button = map(ActionButton, (back, help_, next_))
        head = build.row((self._count, 1), ActionButton(end, look="link"))
        buttons = build.row(self.back_button, 1, self.help_button, self.next_button)
        parts = head, self._title, self._text, self.hint, buttons
        build.fill(VBoxLayout(self), parts, (BROAD, GAP, BROAD, WIDE)).insertSpacing(4, TIGHT)
        self.hide()

    @property
    def said(self) -> str:
        return " ".join(one.text() for one in (self._title, self._text, self.hint) if one.text())

    def show_stop(self, number: int, count: int, title: str, text: str) -> None:
        """Show another stop; :meth:`show_part` says what to do there."""
        self._count.setText(f"Stop {number} of {count}")
        self._title.setText(title)
        self._text.setText(text)
        self.setAccessibleName(f"Tour, stop {number} of {count}: {title}")
        self.setAccessibleDescription(text)
        self.back_button.action.set_reason("" if number > 1 else "This is the first stop.")

    def show_part(self, hint: str, help_text: str, why_no_help: str, done: bool, last: bool) -> None:
        """Show what to do next. ``help_text``: title of the button that does it; no button if empty."""
        changed = hint != self.hint.text() or done != (self.next_button.property("look") == "primary")
        self.hint.setText(hint)
        self.hint.setVisible(bool(hint))
        if not help_text and self.help_button.hasFocus():
            self.next_button.setFocus(Qt.FocusReason.OtherFocusReason)
        self.help_button.setVisible(bool(help_text))
        self.help_button.action.setText(help_text)
        self.help_button.action.set_reason(why_no_help)
        self.next_button.action.setText("Finish" if last else "Next" if done else "Skip")
        self.next_button.action.set_tip("End the tour" if last else "Go to the next stop")
        set_look(self.next_button, "primary" if done else "")
        said = self.said
        for button in (self.help_button, self.next_button):
            button.setAccessibleDescription(said)
        if changed:
            self.fit()

    def fit(self) -> None:
        width = 24 * self.fontMetrics().height()
        if (layout := self.layout()) is not None:
            layout.activate()
            self.resize(width, layout.totalHeightForWidth(width))

    def take_focus(self) -> None:
        button = self.help_button if self.help_button.isVisible() and self.help_button.isEnabled() else self.next_button
        self.setFocusProxy(button)
        button.setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        focus = self.focusWidget()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and isinstance(focus, QPushButton):
            focus.click()
        else:
            super().keyPressEvent(event)


class TourFrame(QWidget):
    """A frame around a control; mouse events pass through."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()

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


_DONE = "Done."


class TourPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._features = services.features
        self._job = {step.action: (step, name) for step, name in services.job.items()}
        self._stops = services.stops
        self.course: Course | None = None
        self._application: QObject = QApplication.instance() or self
        add = services.actions.add
        end = add("End tour", self.end, "End the tour (Esc)")
        back = add("Back", lambda: self._go(-1), "The stop before")
        do = add("Do it for me", self._help, "Have it done, to see what happens")
        self.card = TourCard(end, back, do, add("Next", lambda: self._go(1)), services.window)
        self.frame = TourFrame(services.window)
        self._before: QWidget | None = None
        """Last focused widget outside the card."""
        self._helping: Part | None = None
        """Part last done for the user, while more parts of the stop follow."""
        self._seen: QWidget | None = None
        """The control that was scrolled into view."""
        self._looking = QTimer(self, interval=150)
        self._looking.timeout.connect(self._look)
        services.workspaces.overlays.append(self.card)
        self._actions.bind(self._actions["tour"], self.start)

    # --- From the first stop to the last ----------------------------------------------------------------------------
    def start(self) -> None:
        self.end()
        family = self._state.selection.entry.family
        stops = [one for one in self._stops if not one.families or family in one.families]
        self._before = QApplication.focusWidget()
        self.course = Course(stops, self._parts)
        self._application.installEventFilter(self)
        self._looking.start()
        self.card.show()
        self.card.take_focus()
        self._show_stop(self.course)

    def end(self) -> None:
        if self.course is None:
            return
        self.course, self._helping, self._seen = None, None, None
        self._looking.stop()
        self._application.removeEventFilter(self)
        had = self._has_focus
        self.card.hide()
        self.frame.hide()
        if had and self._before is not None and isValid(self._before) and self._before.isVisible():
            self._before.setFocus(Qt.FocusReason.OtherFocusReason)
        elif had:
            self._workspaces.enter()

    def _go(self, by: int) -> None:
        if (course := self.course) is not None and by > 0 and course.is_last:
            self.end()
        elif course is not None:
            course.go(by)
            self._show_stop(course)

    def _show_stop(self, course: Course) -> None:
        stop, self._helping, self._seen = course.stop, None, None
        self._bring_forward((course.part.place if course.part is not None else "") or stop.place)
        self.card.show_stop(course.number, len(course.stops), stop.title, stop.text)
        self._show_part(course)
        self.card.show()
        self.card.fit()
        self._place(course)
        self.card.take_focus()
        announce(self.card, f"{self.card.accessibleName()}. {self.card.said}")

    # --- Parts of a stop ---------------------------------------------------------------------------------------------
    def _parts(self, stop: TourStop) -> Sequence[Part]:
        parts = self._features[self._stops[stop]].tour_parts(stop.name)
        return [self._main_step(one) if isinstance(one, str) else one for one in parts]

    def _main_step(self, name: str) -> Part:
        """A main-job step as a part of the tour, with the guide's hint."""
        (step, feature), action = self._job[name], self._actions[name]
        return Part(
            step.hint,
            lambda: self._control(action),
            lambda: bool(self._features[feature].step_done(name)),
            action.trigger,
            lambda: action.reason,
        )

    def _control(self, action: QAction) -> QWidget | None:
        for one in self._window.findChildren(QAbstractButton):
            does = one.defaultAction() if isinstance(one, QToolButton) else None
            if (does or (one.action if isinstance(one, ActionButton) else None)) is action and _in_sight(one):
                return one
        return None

    def _help(self) -> None:
        """Do the next part; further parts of the stop follow once it is done. Focus in the card stays there: the next
        Enter is meant for the tour, not for the panel just shown."""
        part = self.course.part if self.course is not None else None
        if part is not None and not part.why_not():
            self._helping, before = part, self._before
            with_focus = self._has_focus
            self._actions.attempt(part.help)
            if with_focus and not self._has_focus and QApplication.activeModalWidget() is None:
                self.card.take_focus()
                self._before = before

    def _look(self) -> None:
        if (course := self.course) is None:
            return
        if (more := course.look()) and course.part is not None:
            self._bring_forward(course.part.place or course.stop.place)
        self._show_part(course)
        self._place(course)
        if more and course.part is None:
            self._helping = None
            announce(self.card, f"{_DONE} {self.card.next_button.text()}.")
        elif more:
            announce(self.card, self.card.hint.text())
        if more and self._has_focus:
            self.card.take_focus()

    def _show_part(self, course: Course) -> None:
        part, running = course.part, self._state.jobs.running
        if part is None:
            self.card.show_part(f"✓ {_DONE}" if course.last_part else "", "", "", True, course.is_last)
            return
        if self._helping is not None and self._helping is not part and not running and not part.why_not():
            self._help()
        reason = part.why_not()
        hint = f"{running[0].kind.value}…" if running else reason or f"<b>Now:</b> {part.hint}"
        self.card.show_part(hint, part.help_text, reason, False, course.is_last)

    def _bring_forward(self, place: str) -> None:
        """Show panel ``place``: the next part may be in another panel, or a job may have shown its own."""
        if place and place in self._workspaces.panels:
            before, with_focus = self._before, self._has_focus
            self._workspaces.go_to(place)
            if with_focus:
                self.card.take_focus()
                self._before = before

    # --- Placement ---------------------------------------------------------------------------------------------------
    def _place(self, course: Course) -> None:
        part = course.part or course.last_part
        control = part.control() if part is not None else None
        room = self._room()
        if control is not None and control.isVisible() and control is not self._seen:
            self._seen = control
            bring_into_view(control)
        if control is None or not _in_sight(control) or control.window() is not self._window:
            self.frame.hide()
            size = self.card.size()
            self.card.move(room.right() + 1 - size.width() - WIDE, room.bottom() + 1 - size.height() - WIDE)
        else:
            target = QRect(control.mapTo(self._window, QPoint()), control.size())
            around = target.adjusted(-_AROUND, -_AROUND, _AROUND, _AROUND)
            self.frame.setGeometry(around.intersected(self._window.rect()))
            self.frame.show()
            self.frame.raise_()
            self.card.move(placed(self.card.size(), target, room, self._bar_of(control)))
        self.card.raise_()

    def _bar_of(self, control: QWidget) -> QRect | None:
        """The toolbar around ``control``, to keep clear as a whole; ``None`` in a panel."""
        one: QWidget | None = control
        while one is not None and not isinstance(one, QToolBar):
            one = one.parentWidget()
        return None if one is None else QRect(one.mapTo(self._window, QPoint()), one.size())

    def _room(self) -> QRect:
        centre, messages = self._window.centralWidget(), self._notices.banner
        room = QRect(centre.mapTo(self._window, QPoint()), centre.size()).adjusted(6, 6, -6, -6)
        if messages.isVisible() and messages.y() - room.top() > self.card.height():
            room.setBottom(messages.y() - 6)
        return room

    # --- The focus and Escape ----------------------------------------------------------------------------------------
    @property
    def _has_focus(self) -> bool:
        focus = QApplication.focusWidget()
        return focus is not None and self.card.isAncestorOf(focus)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Escape ends the tour wherever the focus is, except in menus and dialogs, which close first. Once the tour has
        ended, it cancels jobs again."""
        kind = event.type()
        if kind is QEvent.Type.FocusIn and isinstance(watched, QWidget):
            if watched.window() is self._window and not self.card.isAncestorOf(watched):
                self._before = watched
        elif kind in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress) and isinstance(event, QKeyEvent):
            covered = QApplication.activePopupWidget() or QApplication.activeModalWidget()
            if event.key() == Qt.Key.Key_Escape and covered is None and isinstance(watched, QWidget):
                event.accept()
                if kind is QEvent.Type.KeyPress:
                    self.end()
                return True
        return False

    def shut_down(self) -> None:
        self.end()


def _in_sight(control: QWidget) -> bool:
    """Whether any part of ``control`` is visible. (Its visible region would omit areas painted by children.)"""
    seen, one = control.rect(), control
    while not one.isWindow() and (parent := one.parentWidget()) is not None:
        seen = seen.translated(one.pos()).intersected(parent.rect())
        one = parent
    return control.isVisible() and not seen.isEmpty()
