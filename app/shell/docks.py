"""Places of panels: docks, the default layout, moving them, and the layout kept between sessions.

A new panel is one more :class:`~app.shell.places.Place`; its presenter puts the panel there.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QByteArray, QEvent, QObject, Qt, QTimer, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabWidget, QToolBar, QWidget, QWidgetAction

from app.shell.places import Place, Region
from app.shell.theme import Colours
from app.widgets.shrinkable import Shrinkable


@runtime_checkable
class Coloured(Protocol):
    """A widget that follows the theme; every panel is one."""

    def set_colours(self, colours: Colours) -> None:
        """Draw with ``colours`` from now on."""


_DOCKED = (Region.LEFT, Region.CENTRE, Region.RIGHT, Region.BELOW)
_SIDES = (Region.LEFT, Region.RIGHT)
"""The regions that keep their width when the window gets wider or narrower."""


class Docks(QObject):
    """The docks of one window, each with its panel once that is built."""

    def __init__(self, window: QMainWindow, places: Sequence[Place]) -> None:
        super().__init__(window)
        self._window = window
        self._places = tuple(one for one in places if one.region in _DOCKED)
        self.feet = tuple(one for one in places if one.region is Region.FOOT)
        """The places that are bars at the foot of the window, on top of each other."""
        self._docks: dict[str, QDockWidget] = {}
        self._before: QByteArray | None = None
        self.family = ""
        """Family of the models that the shown panels suit; ``""`` before any was used."""
        self._next_family = ""
        """Family of the model that was chosen while one panel alone is shown."""
        self.panels: dict[str, QWidget] = {}
        """The panels that are built, by name."""
        window.setDockNestingEnabled(True)
        window.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        for place in self._places:
            dock = QDockWidget(place.title, window)
            dock.setObjectName(place.name)
            dock.setFeatures(
                QDockWidget.DockWidgetFeature.DockWidgetMovable
                | QDockWidget.DockWidgetFeature.DockWidgetFloatable
                | QDockWidget.DockWidgetFeature.DockWidgetClosable
            )
            dock.setWidget(QWidget())
            self._docks[place.name] = dock
        self._kept: dict[QDockWidget, int] = {}
        """Widths of the sides, as they were laid out or dragged last."""
        window.installEventFilter(self)
        self.unlock(False)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Separators between docks are the window's own: where it was clicked, one may have been dragged."""
        if event.type() is QEvent.Type.MouseButtonRelease:
            QTimer.singleShot(0, self, self._note_widths)
        return False

    @Slot()
    def _note_widths(self) -> None:
        sides = (dock for region in _SIDES for dock in self._in(region))
        self._kept = {dock: dock.width() for dock in sides if dock.isVisible() and not dock.isFloating()}

    def keep_sides(self) -> None:
        """Let the sides be as wide as they were laid out or dragged last, and the centre have the rest: for a window
        that became wider or narrower, or got new panels."""
        if not self._kept and self._window.isVisible():
            self._note_widths()
        sides = {dock: width for dock, width in self._kept.items() if dock.isVisible() and not dock.isFloating()}
        centre = next((dock for dock in self._in(Region.CENTRE) if not dock.visibleRegion().isEmpty()), None)
        if sides and centre is not None and any(dock.width() != width for dock, width in sides.items()):
            rest = centre.width() + sum(dock.width() - width for dock, width in sides.items())
            docks, widths = [*sides, centre], [*sides.values(), max(rest, 1)]
            self._window.resizeDocks(docks, widths, Qt.Orientation.Horizontal)

    def __getitem__(self, name: str) -> QDockWidget:
        return self._docks[name]

    def __iter__(self) -> Iterator[tuple[Place, QDockWidget]]:
        return ((place, self._docks[place.name]) for place in self._places)

    @property
    def version(self) -> int:
        """Version of saved layouts: those of another set of panels, or of the time when Setup had an area apart, are
        ignored."""
        return zlib.crc32(" ".join(("one area", *(place.name for place in self._places))).encode()) & 0x7FFFFFFF

    @property
    def fronts(self) -> tuple[str, ...]:
        """The names of the panels that are in front of their regions at first."""
        return tuple(next(self._in(region)).objectName() for region in _DOCKED)

    def put(self, name: str, panel: QWidget) -> None:
        """Put ``panel`` where nothing or its placeholder was."""
        self.panels[name] = panel
        foot = next((one for one in self.feet if one.name == name), None)
        if foot is not None:
            add_bar(self._window, name, foot.title, panel, Qt.ToolBarArea.BottomToolBarArea)
            return
        placeholder = self._docks[name].widget()
        region = next(place.region for place in self._places if place.name == name)
        # The sides scroll by themselves.
        self._docks[name].setWidget(panel if region in _SIDES else Shrinkable(panel))
        placeholder.deleteLater()

    def bring_forward(self, name: str) -> None:
        """Show the panel in front of the tabs next to it."""
        self._docks[name].raise_()

    def go_to(self, name: str) -> None:
        """Show the panel and put the focus into it."""
        panel = self.panels.get(name)
        if name in self._docks:
            dock = self._docks[name]
            dock.show()
            dock.raise_()
            panel = panel or dock.widget()
        if panel is None:
            return
        main = panel.focusProxy()
        if main is not None and main.isEnabled() and main.isVisibleTo(panel):
            main.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return
        chain = [panel]
        while (following := chain[-1].nextInFocusChain()) is not None and following is not panel:
            chain.append(following)
        for one in chain:
            reachable = one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isEnabled() and one.isVisibleTo(panel)
            if reachable and (one is panel or panel.isAncestorOf(one)):
                one.setFocus(Qt.FocusReason.ShortcutFocusReason)
                return

    def unlock(self, on: bool) -> None:
        """Show the panels' title bars, by which they can be moved, floated and closed; or hide them again."""
        for dock in self._docks.values():
            # None gives the usual title bar back; PySide's declaration leaves that out.
            dock.setTitleBarWidget(None if on else QWidget(dock))  # type: ignore[arg-type]

    def suit(self, family: str) -> None:
        """Once models of another ``family`` are used, show the panels that have something to say about them and hide
        those that have not; :meth:`go_to` shows them all the same. If one was in front, one of theirs is now. Panels
        that were closed stay closed as long as the family does. While one panel alone is shown, that waits for
        :meth:`show_as_before`."""
        if self._before is not None:
            self._next_family = family
            return
        before, self.family = self.family, family
        if family == before:
            return
        strange = [dock for place, dock in self if place.families and family not in place.families]
        leaves_front = any(not dock.visibleRegion().isEmpty() for dock in strange)
        for dock in strange:
            dock.hide()
        for place, dock in self:
            if family in place.families and before and before not in place.families:
                dock.show()
        if leaves_front:
            centre = [(place, self._docks[place.name]) for place in self._places if place.region is Region.CENTRE]
            theirs = next((dock for place, dock in centre if family in place.families), None)
            (theirs or next(dock for place, dock in centre if not place.families)).raise_()

    def show_only(self, name: str) -> None:
        """Hide all panels but one, until :meth:`show_as_before`."""
        self._before = self.saved()
        for place, dock in self:
            dock.setVisible(place.name == name)

    def show_as_before(self) -> None:
        """Show what :meth:`show_only` hid, where it was."""
        if self._before is not None:
            self._window.restoreState(self._before, self.version)
            self._before = None
            family, self._next_family = self._next_family or self.family, ""
            self.suit(family)

    def saved(self) -> QByteArray:
        """The layout, for :meth:`restore`; the one that comes back while only one panel is shown."""
        return self._before if self._before is not None else self._window.saveState(self.version)

    def restore(self, layout: object) -> None:
        """Take up a saved layout; the default one where ``layout`` is none that fits. Only this before the window is
        shown: of a layout that another one replaces before then, Qt leaves a tab bar over the menu bar."""
        if not (isinstance(layout, QByteArray) and self._window.restoreState(layout, self.version)):
            self.default_layout()

    def default_layout(self) -> None:
        """Put the docks if they are at first start."""
        window, self._before = self._window, None
        for dock in self._docks.values():
            dock.setFloating(False)
            window.removeDockWidget(dock)
        fronts = [self._docks[name] for name in self.fronts]
        left, centre, right, below = fronts
        # All in one area: between two areas, Qt shares out extra room as it likes.
        window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, left)
        window.splitDockWidget(left, centre, Qt.Orientation.Horizontal)
        window.splitDockWidget(centre, right, Qt.Orientation.Horizontal)
        window.splitDockWidget(centre, below, Qt.Orientation.Vertical)
        for region in _DOCKED:
            docks = list(self._in(region))
            for before, dock in itertools.pairwise(docks):
                window.tabifyDockWidget(before, dock)
        for dock in self._docks.values():
            dock.show()
        for dock in fronts:
            dock.raise_()
        family, self.family, self._next_family = self._next_family or self.family, "", ""
        if family:
            self.suit(family)
        self._share_out(left, centre, right, below)

    def _in(self, region: Region) -> Iterator[QDockWidget]:
        return (self._docks[place.name] for place in self._places if place.region is region)

    def _share_out(self, left: QDockWidget, centre: QDockWidget, right: QDockWidget, below: QDockWidget) -> None:
        unit = self._window.fontMetrics().height()
        width = max(self._window.width(), 70 * unit)
        left_width = min(max(int(width * 0.25), 21 * unit), 25 * unit)
        right_width = min(max(int(width * 0.17), 14 * unit), 20 * unit)
        self._kept = {left: left_width, right: right_width}
        self._window.resizeDocks(
            [left, centre, right],
            [left_width, width - left_width - right_width, right_width],
            Qt.Orientation.Horizontal,
        )
        self._window.resizeDocks([centre, below], [1000, 1000], Qt.Orientation.Vertical)


def add_bar(
    window: QMainWindow,
    name: str,
    title: str,
    content: QWidget,
    area: Qt.ToolBarArea = Qt.ToolBarArea.TopToolBarArea,
) -> tuple[QToolBar, QAction]:
    """A fixed bar in ``area``, above the docks by default, that holds ``content`` alone; and the action that shows
    it."""
    bar = QToolBar(title, movable=False)
    bar.setObjectName(name)
    bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
    # Made here, not by the bar: wrappers of actions that Qt makes do not last (see :mod:`app.state.undo`).
    shown = QWidgetAction(bar)
    shown.setDefaultWidget(content)
    bar.addAction(shown)
    bar.toggleViewAction().setVisible(False)
    window.addToolBar(area, bar)
    return bar, shown
