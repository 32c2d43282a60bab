"""Where the focus goes: into a panel, and by F6 from one part of the window to the next."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from app.widgets.invitation import EmptyState


def enter(panel: QWidget) -> bool:
    """Put the focus on what ``panel`` is entered by: its focus proxy, else what fills it while it is empty, else the
    first that Tab reaches in it; whether there is anything."""
    main = panel.focusProxy()
    if main is not None and main.isEnabled() and main.isVisibleTo(panel):
        main.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return True
    for button in (one for empty in panel.findChildren(EmptyState) for one in empty.buttons):
        if button.isEnabled() and button.isVisibleTo(panel):
            button.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return True
    # By what was seen already, as Qt leads some around without ever coming back to the panel. No farther than needed:
    # of what Qt made by itself on the way, PySide keeps a shell each time.
    seen: set[QWidget] = set()
    one: QWidget | None = panel
    while one is not None and one not in seen:
        seen.add(one)
        reachable = one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isEnabled() and one.isVisibleTo(panel)
        if reachable and (one is panel or panel.isAncestorOf(one)):
            one.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return True
        one = one.nextInFocusChain()
    return False


class Regions(QObject):
    """Goes from part to part of a window, and remembers where the focus was in each."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._last: dict[QWidget, QWidget] = {}

    def go_on(self, parts: Sequence[QWidget], first: QWidget | None = None, backwards: bool = False) -> None:
        """Put the focus into the part after (or before) the one with the focus, where something in it can have it;
        into ``first``, if that is shown and has not the focus yet."""
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
