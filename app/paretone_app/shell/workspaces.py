"""The workspaces: the current one, the places of panels, and saved layouts. Each has its docks in a window inside the
application's, so that switching leaves the others alone. A panel of several workspaces moves to the current one."""

from collections import deque
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QObject, QPoint, QRect, QRectF, QSettings, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QIcon, QPainter, QPainterPath, QPalette, QPixmap
from PySide6.QtWidgets import (
    QButtonGroup,
    QDockWidget,
    QMainWindow,
    QStackedWidget,
    QTabBar,
    QToolBar,
    QToolButton,
    QWidget,
    QWidgetAction,
)
from shiboken6 import isValid

from paretone_app.shell.colours import Colours
from paretone_app.shell.docks import Docks
from paretone_app.shell.entries import DOCKED, WORKSPACES, Place, Region, Workspace
from paretone_app.shell.regions import enter
from paretone_app.shell.theme import NEAR, TIGHT
from paretone_app.widgets import build
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import ShownPanel
from paretone_app.widgets.screen_readers import GROUP

_WIDTH, _HEIGHT = 96, 60


class Gallery(QWidget):
    """The cards at the right of ``docks``: a picture of each panel in the centre."""

    screen_role = GROUP

    def __init__(self, docks: Docks) -> None:
        super().__init__()
        self._docks = docks
        self._waiting: deque[str] = deque()
        self.setAccessibleName(f"Views of {docks.workspace.title}")
        self.cards: dict[str, QToolButton] = {}
        group = QButtonGroup(self, exclusive=True)
        column = VBoxLayout(self)
        column.setContentsMargins(0, 0, TIGHT, 0)
        column.setSpacing(NEAR)
        nothing = QPixmap(_WIDTH, _HEIGHT)
        nothing.fill(Qt.GlobalColor.transparent)
        for place in docks.places:
            if place.region is not Region.CENTRE:
                continue
            card = build.tile(place.title, f"Show {place.title}", "card", nothing.size())
            card.setIcon(QIcon(nothing))
            card.clicked.connect(lambda _=False, one=place.name: docks.bring_forward(one))
            group.addButton(card)
            self.cards[place.name] = card
            column.addWidget(card)
        column.addStretch(1)
        area = Scrolled(self)
        # Show the bar's background.
        area.viewport().setAutoFillBackground(False)
        self.setAutoFillBackground(False)
        area.setFixedWidth(_WIDTH + 2 * self.fontMetrics().height())
        right = Qt.ToolBarArea.RightToolBarArea
        self.bar = add_bar(docks.host, "views of the gallery", "Views", area, right)
        self.bar.setProperty("look", "gallery")
        # Pictures are renewed some time after a change, one by one, to stay responsive.
        self._soon = QTimer(self, singleShot=True, interval=400)
        self._soon.timeout.connect(self._take_all)
        self._turn = QTimer(self, singleShot=True, interval=30)
        self._turn.timeout.connect(self._take_one)
        docks.front_changed.connect(self._show_front)
        self._show_front()

    def set_colours(self, colours: Colours) -> None:
        self.look_again()

    def look_again(self) -> None:
        if self._docks.host.isVisible() and self.bar.isVisible():
            self._soon.start()

    def _show_front(self) -> None:
        front = self._docks.front
        for name, card in self.cards.items():
            card.setVisible(not self._docks[name].isHidden())
            card.setChecked(name == front)
        self.look_again()

    def _take_all(self) -> None:
        self._waiting = deque(name for name, card in self.cards.items() if not card.isHidden())
        self._turn.start()

    def _take_one(self) -> None:
        if not (self._waiting and self._docks.host.isVisible()):
            return
        name = self._waiting.popleft()
        panel = self._docks[name].widget()
        if panel is not None:
            front = self._docks[self._docks.front].widget()
            if front is not None and self._docks[name].visibleRegion().isEmpty():
                panel.resize(front.size())  # Its size in front.
            self.cards[name].setIcon(QIcon(self._picture(panel)))
        if self._waiting:
            self._turn.start()

    def _picture(self, panel: QWidget) -> QPixmap:
        ratio, room = self.devicePixelRatioF(), QRectF(0, 0, _WIDTH, _HEIGHT)
        picture = QPixmap((room.size() * ratio).toSize())
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        with QPainter(picture) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if any(one.is_empty and one.isVisibleTo(panel) for one in panel.findChildren(Invited)):
                painter.setFont(self.font())
                painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
                painter.drawText(room, Qt.AlignmentFlag.AlignCenter, "Nothing yet")
                return picture
            path = QPainterPath()
            path.addRoundedRect(room, 4, 4)
            painter.setClipPath(path)
            filling, smooth = Qt.AspectRatioMode.KeepAspectRatioByExpanding, Qt.TransformationMode.SmoothTransformation
            seen = panel.grab().scaled(picture.size(), filling, smooth)
            seen.setDevicePixelRatio(ratio)
            painter.drawPixmap(0, 0, seen)
        return picture


def recolour(root: QWidget, colours: Colours) -> None:
    """Set the colours of ``root`` and of all widgets within it that have any, outer ones first."""
    for one in (root, *root.findChildren(QWidget)):
        if hasattr(one, "set_colours"):
            one.set_colours(colours)


class Workspaces(QObject):
    """The workspaces of ``window`` and the places of panels; iterating gives each panel's dock at home."""

    changed = Signal()
    moved = Signal()
    """Other panels are visible, or panels moved."""

    def __init__(self, window: QMainWindow, places: Sequence[Place]) -> None:
        super().__init__(window)
        self._window = window
        self._docked = tuple(one for one in places if one.region in DOCKED)
        self._homes = {one.name: one.home for one in self._docked}
        self.bars = tuple(one for one in places if one.region not in DOCKED)
        self.panels: dict[str, QWidget] = {}
        self._framed: dict[str, QWidget] = {}
        """The widgets in the docks: panels, or their scroll areas."""
        self._heads: dict[str, QToolBar] = {}
        self._stack = QStackedWidget()
        self.overlays: list[QWidget] = []
        """Widgets that features lay over the panels; F6 visits them."""
        self._last: dict[Workspace, QWidget] = {}
        """Focused widget when the workspace was left."""
        self.galleries: dict[Workspace, Gallery] = {}
        """Galleries of workspaces that show one panel at a time."""
        self._docks: dict[Workspace, Docks] = {}
        for workspace in WORKSPACES:
            theirs = [one for one in self._docked if workspace in one.workspaces]
            if not any(one.region is Region.CENTRE and one.home is workspace for one in theirs):
                continue  # A window with fewer features.
            host = QMainWindow(flags=Qt.WindowType.Widget)
            host.setObjectName(f"workspace {workspace.name}")
            host.setAccessibleName(f"Workspace {workspace.title}")
            self._docks[workspace] = docks = Docks(host, workspace, theirs)
            docks.front_changed.connect(self.moved)
            if workspace.gallery:
                self.galleries[workspace] = Gallery(docks)
            self._stack.addWidget(host)
            for place, dock in docks:
                dock.visibilityChanged.connect(lambda on, name=place.name: self._look_at(name) if on else None)
                if len(place.workspaces) > 1:
                    # Also when the user shows or closes it here.
                    dock.toggleViewAction().triggered.connect(self._move_panels)
        self.current = next(iter(self._docks))
        window.setCentralWidget(self._stack)

    # --- Current workspace --------------------------------------------------------------------------------------------
    @property
    def there(self) -> tuple[Workspace, ...]:
        return tuple(self._docks)

    @property
    def shown(self) -> Docks:
        return self._docks[self.current]

    def of(self, workspace: Workspace) -> Docks:
        return self._docks[workspace]

    def switch(self, workspace: Workspace) -> None:
        """Show ``workspace`` and restore its focus, or focus its front panel."""
        if not self._show(workspace):
            return
        last = self._last.get(workspace)
        if last is not None and isValid(last) and last.isVisible() and last.isEnabled():
            last.setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            self.enter()

    def _show(self, workspace: Workspace) -> bool:
        if workspace is self.current:
            return False
        focus = self._window.focusWidget()
        if focus is not None and self.shown.host.isAncestorOf(focus):
            self._last[self.current] = focus
            # Otherwise the focus passes over a button of the rail, and screen readers announce it.
            self._stack.setAccessibleName(workspace.title)
            self._stack.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.current = workspace
        self._move_panels()
        self._stack.setCurrentWidget(self.shown.host)
        self.shown.keep_sides()
        self.changed.emit()
        return True

    def _show_heads(self) -> None:
        """Hide the bars above the panels while a panel is maximised."""
        for place in self.bars:
            if place.name in self._heads:
                self._heads[place.name].setVisible(not self._docks[place.home].alone)

    def _look_at(self, name: str) -> None:
        panel = self.panels.get(name)
        if isinstance(panel, ShownPanel):
            panel.look()

    def _move_panels(self) -> None:
        """Move panels of several workspaces to the current one if shown there, else home."""
        for place in self._docked:
            if len(place.workspaces) > 1 and place.name in self._framed:
                here = place.name in self.shown and not self.shown[place.name].isHidden()
                docks, panel = self.shown if here else self._docks[place.home], self._framed[place.name]
                if docks[place.name].widget() is not panel:
                    focus = panel.focusWidget()
                    docks.put(place.name, panel)
                    panel.show()
                    if focus is not None:
                        focus.clearFocus()

    def __getitem__(self, name: str) -> QDockWidget:
        return self._docks[self._homes[name]][name]

    def __iter__(self) -> Iterator[tuple[Place, QDockWidget]]:
        return ((place, self[place.name]) for place in self._docked)

    def _docks_of(self, name: str) -> Docks:
        """The docks of the current workspace if the panel is shown there, else those of its home."""
        here = name in self.shown and not self.shown[name].isHidden()
        return self.shown if here else self._docks[self._homes[name]]

    def put(self, name: str, panel: QWidget) -> None:
        self.panels[name] = panel
        bar = next((one for one in self.bars if one.name == name), None)
        if bar is not None:
            if bar.region is Region.FOOT:
                add_bar(self._window, name, bar.title, panel, Qt.ToolBarArea.BottomToolBarArea)
            else:
                self._heads[name] = add_bar(self._docks[bar.home].host, name, bar.title, panel)
            return
        docks = self._docks_of(name)
        self._framed[name] = docks.framed(name, panel)
        docks.put(name, self._framed[name])

    def bring_forward(self, name: str) -> None:
        """Show the panel in front of its neighbours' tabs, without leaving the current workspace."""
        self._docks_of(name).bring_forward(name)

    def go_to(self, name: str) -> None:
        """Show and focus the panel, in the current workspace or at its home."""
        if name in self._homes:
            docks = self._docks_of(name)
            self._show(docks.workspace)
            docks.show(name)
        self.enter(name)

    def enter(self, name: str = "") -> None:
        """Focus the panel, by default the front one."""
        if (panel := self.panels.get(name or self.shown.front)) is not None:
            enter(panel)

    def maximise(self) -> None:
        """Maximise the focused panel, or the front one; or restore all."""
        docks = self.shown
        if docks.alone:
            docks.show_as_before()
        else:
            focus = self._window.focusWidget()
            inside = (place.name for place, dock in docks if focus is not None and dock.isAncestorOf(focus))
            docks.show_only(next(inside, docks.front))
        if self.current in self.galleries:
            self.galleries[self.current].bar.setVisible(not docks.alone)
        self._show_heads()

    def unlock(self, on: bool) -> None:
        for docks in self._docks.values():
            docks.unlock(on)

    def suit(self, *families: str) -> None:
        for docks in self._docks.values():
            docks.suit(*families)
        self._move_panels()

    @property
    def parts(self) -> tuple[QWidget, ...]:
        """Parts of the current workspace, for F6."""
        return (*self.overlays, *self._parts_of(self.current))

    @property
    def reading_order(self) -> tuple[QWidget, ...]:
        """Parts of all workspaces in reading order, each workspace's host last."""
        return tuple(part for one, docks in self._docks.items() for part in (*self._parts_of(one), docks.host))

    def _parts_of(self, workspace: Workspace) -> tuple[QWidget, ...]:
        docks = self._docks[workspace]
        ordered = sorted(docks, key=lambda one: DOCKED.index(one[0].region))
        cards = (self.galleries[workspace],) if workspace in self.galleries else ()
        heads = bars_of(docks.host, Qt.ToolBarArea.TopToolBarArea)
        return (*heads, *(dock for _, dock in ordered), *cards)

    @property
    def size(self) -> QSize:
        return self._stack.size()

    def room_for_messages(self) -> QRect:
        """Rectangle for messages, in window coordinates: left of and above the panels that messages must not cover."""
        room = QRect(self._stack.mapTo(self._window, QPoint()), self._stack.size())
        for place, dock in self.shown:
            if place.uncovered and not dock.isFloating() and self.shown.is_seen(dock):
                corner = dock.mapTo(self._window, QPoint())
                if self.shown.region(place.name) is Region.RIGHT:
                    room.setRight(min(room.right(), corner.x() - 1))
                else:
                    tabs = self.shown.host.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
                    above = max((one.height() for one in tabs if one.isVisible()), default=0)
                    room.setBottom(min(room.bottom(), corner.y() - above - 1))
        return room

    def look_again(self) -> None:
        if self.current in self.galleries:
            self.galleries[self.current].look_again()

    # --- Saved layouts ------------------------------------------------------------------------------------------------
    def restore(self, settings: QSettings, size: QSize) -> None:
        """Restore what :meth:`save` kept, before the window is shown, for workspaces of about ``size``."""
        for workspace, docks in self._docks.items():
            docks.host.resize(size)
            docks.families = tuple(str(settings.value("family", "")).split())
            docks.restore(settings.value(f"layouts/{workspace.name}"))
        last = str(settings.value("workspace", ""))
        self._show(next((one for one in self._docks if one.name == last), self.there[0]))
        self._move_panels()
        self._show_heads()

    def save(self, settings: QSettings) -> None:
        settings.remove("layout")  # From versions without workspaces.
        for workspace, docks in self._docks.items():
            settings.setValue(f"layouts/{workspace.name}", docks.saved())
        settings.setValue("family", " ".join(self.shown.families))
        settings.setValue("workspace", self.current.name)

    def default_layout(self) -> None:
        for workspace, docks in self._docks.items():
            docks.host.resize(self.size)
            docks.default_layout()
            if workspace in self.galleries:
                self.galleries[workspace].bar.show()
        self._move_panels()
        self._show_heads()


def bars_of(window: QMainWindow, area: Qt.ToolBarArea) -> tuple[QToolBar, ...]:
    bars = window.findChildren(QToolBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return tuple(one for one in bars if window.toolBarArea(one) is area)


def add_bar(
    window: QMainWindow, name: str, title: str, content: QWidget, area: Qt.ToolBarArea = Qt.ToolBarArea.TopToolBarArea
) -> QToolBar:
    """A fixed bar in ``area`` with ``content`` only."""
    bar = QToolBar(title, movable=False)
    bar.setObjectName(name)
    bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
    # Created in Python: wrappers of actions created by Qt do not last (see :mod:`paretone_app.shell.actions`).
    shown = QWidgetAction(bar)
    shown.setDefaultWidget(content)
    bar.addAction(shown)
    bar.toggleViewAction().setVisible(False)
    if bars_of(window, area):
        window.addToolBarBreak(area)
    window.addToolBar(area, bar)
    return bar
