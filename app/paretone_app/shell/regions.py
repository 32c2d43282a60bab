"""Keyboard navigation: regions by F6, and the Tab order."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QTabBar, QWidget
from shiboken6 import isValid

from paretone_app.widgets.invitation import EmptyState
from paretone_app.widgets.layouts import bring_into_view


def enter(panel: QWidget) -> bool:
    """Focus the entry widget of ``panel``: its focus proxy, else the button of its empty state, else the first Tab
    stop; returns whether there is one."""
    main = panel.focusProxy()
    if main is not None and main.isEnabled() and main.isVisibleTo(panel):
        main.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return True
    for button in (one for empty in panel.findChildren(EmptyState) for one in empty.buttons):
        if button.isEnabled() and button.isVisibleTo(panel):
            button.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return True
    fields = [one for one in (panel, *_inside(panel)) if _takes_tab(one, panel)]
    first = next((one for one in fields if _comes_from_outside(one, panel, fields)), next(iter(fields), None))
    if first is None:
        return False
    first.setFocus(Qt.FocusReason.ShortcutFocusReason)
    return True


def _inside(widget: QWidget) -> Iterator[QWidget]:
    """Visible widgets inside ``widget``, level by level. PySide keeps a shell of each widget created by Qt that is
    requested, so the window's whole Tab order is never walked."""
    for one in widget.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
        if one.isVisibleTo(widget) and not one.isWindow():
            yield one
            yield from _inside(one)


def _takes_tab(one: QWidget, panel: QWidget) -> bool:
    return bool(one.focusPolicy() & Qt.FocusPolicy.TabFocus) and one.isEnabled() and one.isVisibleTo(panel)


def _comes_from_outside(field: QWidget, panel: QWidget, fields: list[QWidget]) -> bool:
    """Whether Tab enters ``panel`` at ``field``."""
    before = field.previousInFocusChain()
    while before is not None and panel.isAncestorOf(before) and before not in fields:
        before = before.previousInFocusChain()
    return before is None or not panel.isAncestorOf(before)


class Regions(QObject):
    """Moves the focus between the parts of a window and remembers it in each."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._last: dict[QWidget, QWidget] = {}

    def go_on(self, parts: Sequence[QWidget], first: QWidget | None = None, backwards: bool = False) -> None:
        """Focus the next (or previous) part that accepts the focus; ``first`` if it is shown and not focused."""
        parts = [one for one in parts if one.isVisible() and not one.visibleRegion().isEmpty()]
        focus = QApplication.focusWidget()
        at = next((index for index, one in enumerate(parts) if _is_in(focus, one)), -1)
        if focus is not None and at >= 0:
            self._last[parts[at]] = focus
        if first in parts and not _is_in(focus, first) and enter(first):
            return
        step = -1 if backwards else 1
        start = at if at >= 0 else (0 if backwards else -1)
        for number in range(1, len(parts) + 1):
            part = parts[(start + step * number) % len(parts)]
            last = self._last.get(part)
            if last is not None and isValid(last) and _is_in(last, part) and last.isVisible() and last.isEnabled():
                last.setFocus(Qt.FocusReason.ShortcutFocusReason)
                return
            if enter(part):
                return


def _is_in(widget: QWidget | None, part: QWidget) -> bool:
    return widget is not None and (widget is part or part.isAncestorOf(widget))


def follow(parts: Sequence[QWidget]) -> None:
    """Make Tab visit ``parts`` in order, and keep the order within each."""
    owners = {part: place for place, part in enumerate(parts)}
    found: list[list[QWidget]] = [[] for _ in parts]
    first = parts[0].window()
    one = first.nextInFocusChain()
    while one is not None and one is not first:
        owner: QWidget | None = one
        while owner is not None and owner not in owners:
            owner = owner.parentWidget()
        if owner is not None and one.focusPolicy() is not Qt.FocusPolicy.NoFocus and one.focusProxy() is None:
            found[owners[owner]].append(one)
        one = one.nextInFocusChain()
    for before, after in pairwise([one for part in found for one in part]):
        QWidget.setTabOrder(before, after)


def tab_on(window: QWidget, forward: bool, hidden: Sequence[QWidget] = ()) -> bool:
    """Focus the next (or previous) control of ``window`` by Tab, but none of ``hidden`` panels, whose tab is not in
    front; returns whether there is one. Qt would also stop in those, and at panels with an entry widget: these come
    last in its order, so from the last control Tab would lead to one of them, and never to the first control."""
    focus = window.focusWidget() or window
    one = focus.nextInFocusChain() if forward else focus.previousInFocusChain()
    while one is not None and one is not focus:
        stops = _takes_tab(one, window) and one.focusProxy() is None and one.window() is window
        is_arrow = isinstance(one.parent(), QTabBar)
        if stops and not is_arrow and not any(panel.isAncestorOf(one) for panel in hidden):
            one.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
            bring_into_view(one)
            return True
        one = one.nextInFocusChain() if forward else one.previousInFocusChain()
    return False


def insert_before(widget: QWidget, added: Sequence[QWidget]) -> None:
    """Put ``added`` just before ``widget`` in the Tab order; Qt appends new widgets at the end."""
    before = widget.previousInFocusChain()
    # Qt silently ignores requests about widgets that never have the focus.
    while before is not None and before is not widget and before.focusPolicy() is Qt.FocusPolicy.NoFocus:
        before = before.previousInFocusChain()
    if before is not None:
        insert_after(before, added)


def insert_after(widget: QWidget, added: Sequence[QWidget]) -> None:
    """Put ``added`` just after ``widget``, which accepts the focus, in the Tab order."""
    for one, other in pairwise((widget, *added)):
        QWidget.setTabOrder(one, other)
