"""The tour's presenter: goes from stop to stop, shows where each thing is done, and sees when it has been."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Slot
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QScrollArea, QToolBar, QToolButton, QWidget
from shiboken6 import isValid

from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.tour.model import Course, Part
from paretone_app.features.tour.panel import TourActions, TourCard, TourFrame, in_a_corner, placed
from paretone_app.shell.entries import TourStop
from paretone_app.widgets.action import ActionButton
from paretone_app.widgets.screen_readers import announce

_LOOK_MILLISECONDS = 150
"""How often the card looks where its control is, and whether the thing has been done."""
_DONE = "Done."


class TourPresenter(Presenter):
    """Owns the card, which is there only while the tour is."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._features, self._status = services.features, services.status
        self._job = {step.action: (step, name) for step, name in services.job.items()}
        self._stops = services.stops
        self.course: Course | None = None
        """The tour; ``None`` while there is none."""
        add = services.actions.add
        actions = TourActions(
            end=add("End tour", self.end, "End the tour (Esc)"),
            back=add("Back", lambda: self._go(-1), "The stop before"),
            help=add("Do it for me", self._help, "Have it done, to see what happens"),
            next=add("Next", lambda: self._go(1)),
        )
        self.card = TourCard(actions, services.window)
        self.frame = TourFrame(services.window)
        self._before: QWidget | None = None
        """What had the focus last, outside the card."""
        self._helping: Part | None = None
        """What was done for the user last, while more of the stop follows."""
        self._seen: QWidget | None = None
        """The control that was scrolled into view."""
        self._looking = QTimer(self, interval=_LOOK_MILLISECONDS)
        self._looking.timeout.connect(self._look)
        services.workspaces.overlays.append(self.card)
        self._actions.bind(self._actions["tour"], self.start)

    @property
    def on(self) -> bool:
        """Whether the tour is on."""
        return self.course is not None

    # --- From the first stop to the last ----------------------------------------------------------------------------
    def start(self) -> None:
        """Begin at the first stop."""
        self.end()
        family = self._state.selection.entry.family
        stops = [one for one in self._stops if not one.families or family in one.families]
        self._before = QApplication.focusWidget()
        self.course = Course(stops, self._parts)
        application = QApplication.instance()
        if application is not None:
            application.installEventFilter(self)
        self._looking.start()
        self.card.show()
        self.card.take_focus()
        self._show_stop(self.course)

    @Slot()
    def end(self) -> None:
        """Take the card away and give the focus back."""
        if self.course is None:
            return
        self.course, self._helping, self._seen = None, None, None
        self._looking.stop()
        application = QApplication.instance()
        if application is not None:
            application.removeEventFilter(self)
        had = self._has_focus
        self.card.hide()
        self.frame.hide()
        if not had:
            return
        if self._before is not None and isValid(self._before) and self._before.isVisible():
            self._before.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self._workspaces.enter()

    @Slot(int)
    def _go(self, by: int) -> None:
        course = self.course
        if course is None:
            return
        if by > 0 and course.is_last:
            self.end()
            return
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

    # --- What there is to do -----------------------------------------------------------------------------------------
    def _parts(self, stop: TourStop) -> Sequence[Part]:
        parts = self._features[self._stops[stop]].tour_parts(stop.name)
        return [self._main_step(one) if isinstance(one, str) else one for one in parts]

    def _main_step(self, name: str) -> Part:
        """A step of the main job as it is in the guide."""
        (step, feature), action = self._job[name], self._actions[name]
        return Part(
            step.hint,
            lambda: self._control(action),
            lambda: bool(self._features[feature].step_done(name)),
            action.trigger,
            lambda: action.reason,
        )

    def _control(self, action: QAction) -> QWidget | None:
        """The button in sight that does ``action``."""
        for one in self._window.findChildren(QAbstractButton):
            does = one.defaultAction() if isinstance(one, QToolButton) else None
            if (does or (one.action if isinstance(one, ActionButton) else None)) is action and _in_sight(one):
                return one
        return None

    @Slot()
    def _help(self) -> None:
        """Do the next part; those that follow it at this stop are done once it is. Whoever had the focus in the card
        keeps it there: the next Enter is meant for the tour, not for what was just shown."""
        part = self.course.part if self.course is not None else None
        if part is not None and not part.why_not():
            self._helping, before = part, self._before
            with_focus = self._has_focus
            self._actions.attempt(part.help)
            if with_focus and not self._has_focus and QApplication.activeModalWidget() is None:
                self.card.take_focus()
                self._before = before

    @Slot()
    def _look(self) -> None:
        course = self.course
        if course is None:
            return
        more = course.look()
        if more and course.part is not None:
            self._bring_forward(course.part.place or course.stop.place)
        self._show_part(course)
        self._place(course)
        if not more:
            return
        if course.part is None:
            self._helping = None
            announce(self.card, f"{_DONE} {self.card.next_button.text()}.")
        else:
            announce(self.card, self.card.hint)
        if self._has_focus:
            self.card.take_focus()

    def _show_part(self, course: Course) -> None:
        part, running = course.part, self._state.jobs.running
        if part is None:
            self.card.show_part(f"✓ {_DONE}" if course.last_part else "", "", "", True, course.is_last)
            return
        if self._helping is not None and self._helping is not part and not running and not part.why_not():
            self._help()
        reason = part.why_not()
        hint = f"<b>Now:</b> {part.hint}"
        if running:
            hint = f"{running[0].kind.value}…"
        elif reason:
            hint = reason
        self.card.show_part(hint, part.help_text, reason, False, course.is_last)

    def _bring_forward(self, place: str) -> None:
        """What is to be done next may be in another panel, or jobs may have shown theirs."""
        if place and place in self._workspaces.panels:
            before, with_focus = self._before, self._has_focus
            self._workspaces.go_to(place)
            if with_focus:
                self.card.take_focus()
                self._before = before

    # --- Where it is -------------------------------------------------------------------------------------------------
    def _place(self, course: Course) -> None:
        """Put the card near the control, with the frame around it."""
        part = course.part or course.last_part
        control = part.control() if part is not None else None
        room = self._room()
        if control is not None and control.isVisible() and control is not self._seen:
            self._seen = control
            _bring_into_view(control)
        if control is None or not _in_sight(control) or control.window() is not self._window:
            self.frame.hide()
            self.card.move(in_a_corner(self.card.size(), room))
        else:
            target = QRect(control.mapTo(self._window, QPoint()), control.size())
            self.frame.show_around(target, self._window.rect())
            self.frame.raise_()
            self.card.move(placed(self.card.size(), target, room, self._bar_of(control)))
        self.card.raise_()

    def _bar_of(self, control: QWidget) -> QRect | None:
        """The bar that ``control`` is in, whose other buttons and words belong to it; ``None`` in a panel."""
        one: QWidget | None = control
        while one is not None and not isinstance(one, QToolBar):
            one = one.parentWidget()
        return None if one is None else QRect(one.mapTo(self._window, QPoint()), one.size())

    def _room(self) -> QRect:
        """The part of the window that the card may be in."""
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
        """The tour ends with the window."""
        self.end()


def _in_sight(control: QWidget) -> bool:
    """Whether any of ``control`` can be seen. Not by its visible region, which leaves out what children paint."""
    seen, one = control.rect(), control
    while not one.isWindow() and (parent := one.parentWidget()) is not None:
        seen = seen.translated(one.pos()).intersected(parent.rect())
        one = parent
    return control.isVisible() and not seen.isEmpty()


def _bring_into_view(control: QWidget) -> None:
    """Scroll what ``control`` is in, as little as is needed."""
    parent = control.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(control)
        parent = parent.parentWidget()
