"""The docks of one workspace: default layout, moving and maximising panels, saved layouts."""

import itertools
import zlib
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QByteArray, QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QTabBar, QTabWidget, QWidget

from paretone_app.shell.entries import DOCKED, SIDES, Place, Region, Workspace
from paretone_app.widgets.layouts import Shrinkable


class Docks(QObject):
    """The docks of one workspace, in an inner main window; each holds its panel once built."""

    front_changed = Signal()
    """The front panel of the centre may have changed, or panels were shown or hidden."""

    def __init__(self, host: QMainWindow, workspace: Workspace, places: Sequence[Place]) -> None:
        super().__init__(host)
        self.host = host
        self.workspace = workspace
        self.places = tuple(sorted(places, key=lambda one: not one.first))
        self._docks: dict[str, QDockWidget] = {}
        self._before: QByteArray | None = None
        self.families: tuple[str, ...] = ()
        """Families that the shown panels suit; empty before a model is used."""
        self._next_families: tuple[str, ...] = ()
        """Families of a model chosen while a panel is maximised."""
        self._front = ""
        """The last front panel of the centre."""
        self._wanted: dict[Region, QDockWidget] = {}
        """Docks to raise in their regions, until they are in front."""
        host.setDockNestingEnabled(True)
        host.setAnimated(False)
        host.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        host.installEventFilter(self)
        self._looking = QTimer(self, singleShot=True, interval=0)
        self._looking.timeout.connect(self._look)
        # Delayed: plots that appear or vanish during a resize event crash pyqtgraph.
        self._fitting = QTimer(self, singleShot=True, interval=0)
        self._fitting.timeout.connect(self._fit)
        self._wide: tuple[QByteArray, dict[QDockWidget, int]] | None = None
        """Layout and side widths before the workspace became narrow."""
        for place in self.places:
            dock = QDockWidget(place.title, host)
            dock.setObjectName(place.name)
            dock.setFeatures(
                QDockWidget.DockWidgetFeature.DockWidgetMovable
                | QDockWidget.DockWidgetFeature.DockWidgetFloatable
                | QDockWidget.DockWidgetFeature.DockWidgetClosable
            )
            dock.setWidget(QWidget())
            dock.visibilityChanged.connect(self._look_soon)
            dock.toggleViewAction().triggered.connect(lambda on, one=dock: self._give_room(one) if on else None)
            self._docks[place.name] = dock
        self.kept: dict[QDockWidget, int] = {}
        """Widths of the sides, as last laid out or dragged."""
        self.unlock(False)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind is QEvent.Type.MouseButtonRelease:
            # The host handles the separators between docks: one may have been dragged.
            QTimer.singleShot(0, self, self._note_widths)
        elif kind is QEvent.Type.Resize:
            self.keep_sides()
            self._fitting.start()
        elif kind in (QEvent.Type.Show, QEvent.Type.Hide):
            for dock in self._docks.values():
                if dock.isFloating() and dock.toggleViewAction().isChecked():
                    dock.setVisible(kind is QEvent.Type.Show)
            self._look_soon()
        return False

    def _look_soon(self) -> None:
        self._looking.start()

    def _look(self) -> None:
        if not self.host.isVisible():
            return
        covered = [one for one in self._wanted.values() if not one.isHidden() and not self.is_seen(one)]
        self._wanted.clear()
        for bar in self.host.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            # Keep the focus off hidden tabs, and off bars that the host keeps for later.
            reachable = bar.count() > 0 and self.host.property("tabs") == "yes"
            bar.setFocusPolicy(Qt.FocusPolicy.TabFocus if reachable else Qt.FocusPolicy.NoFocus)
        for dock in covered:
            _raise(dock)
        if covered:
            self._look_soon()
        else:
            seen = next((one for one in self._in(Region.CENTRE) if not one.visibleRegion().isEmpty()), None)
            self._front = seen.objectName() if seen is not None else self._front
            self.front_changed.emit()

    def _note_widths(self) -> None:
        sides = (dock for region in SIDES for dock in self._in(region) if not self._folded or region is Region.LEFT)
        self.kept = {dock: dock.width() for dock in sides if dock.isVisible() and not dock.isFloating()}

    def keep_sides(self) -> None:
        """Keep the widths of the sides, as last laid out or dragged, after a resize; the centre gets the rest."""
        if not self.kept and self.host.isVisible():
            self._note_widths()
        # The contents of a side may have grown: Qt would lay the centre over it.
        sides = {
            dock: max(width, dock.minimumSizeHint().width())
            for dock, width in self.kept.items()
            if dock.isVisible() and not dock.isFloating()
        }
        centre = next((dock for dock in self._in(Region.CENTRE) if not dock.visibleRegion().isEmpty()), None)
        if sides and centre is not None and any(dock.width() != width for dock, width in sides.items()):
            rest = centre.width() + sum(dock.width() - width for dock, width in sides.items())
            docks, widths = [*sides, centre], [*sides.values(), max(rest, 1)]
            self.host.resizeDocks(docks, widths, Qt.Orientation.Horizontal)

    @property
    def _is_narrow(self) -> bool:
        """Whether the panels to the right of the centre belong below it, as tabs."""
        return self.host.width() < 70 * self.host.fontMetrics().height()

    @property
    def _folded(self) -> bool:
        """Whether the panels to the right of the centre are tabs below it."""
        right, below = next(self._in(Region.RIGHT), None), next(self._in(Region.BELOW), None)
        return right is not None and below is not None and right in self.host.tabifiedDockWidgets(below)

    def _fit(self) -> None:
        """Follow a change of width: in a narrow workspace the panels to the right of the centre become tabs below
        it, in a wide one they return. Visibility and panels that the user moved stay."""
        right, below = list(self._in(Region.RIGHT)), list(self._in(Region.BELOW))
        moved = any(dock.isFloating() for dock in (*right, *below[:1]))
        if not right or not below or moved or self.alone or self._folded is self._is_narrow:
            return
        folded = not self._folded
        shown = {dock: not dock.isHidden() for dock in self._docks.values()}
        seen = [dock for dock in self._docks.values() if self.is_seen(dock)]
        if folded:
            self._wide = self.host.saveState(self.version), dict(self.kept)
            # Onto a visible one: Qt forgets the place of a group whose first tab is hidden.
            there = next((dock for dock in below if shown[dock]), below[0])
            for dock in right:
                self.host.tabifyDockWidget(there, dock)
            # Narrower if needed, but never wider than the user's width.
            share = self._shares[Region.LEFT]
            self.kept = {dock: min(self.kept[dock], share) for dock in self._in(Region.LEFT) if dock in self.kept}
            self._share_height()
        elif self._wide is not None:
            layout, self.kept = self._wide
            self.host.restoreState(layout, self.version)
        else:
            self._arrange()
        for dock, on in shown.items():
            dock.setVisible(on)
        if not folded and self._wide is None:
            self._share_out(self._fronts)
        for dock in sorted(seen, key=lambda one: one not in right):
            self.bring_forward(dock.objectName())
        # Activate first, or the widths are the old ones.
        layout_now = self.host.layout()
        if layout_now is not None:
            layout_now.activate()
        self.keep_sides()

    def _give_room(self, dock: QDockWidget) -> None:
        """Give ``dock`` the size of its region: Qt gives none to a dock that was never shown."""
        region = self.region(dock.objectName())
        self._wanted[region] = dock
        _raise(dock)
        shares = self._shares
        if region in shares and not dock.isFloating():
            self.kept[dock] = shares[region]
            self.host.resizeDocks([dock], [shares[region]], Qt.Orientation.Horizontal)
        elif region is Region.BELOW and not dock.isFloating():
            height = round(self.host.height() * self.workspace.below)
            self.host.resizeDocks([dock], [height], Qt.Orientation.Vertical)

    def __getitem__(self, name: str) -> QDockWidget:
        return self._docks[name]

    def __contains__(self, name: str) -> bool:
        return name in self._docks

    def __iter__(self) -> Iterator[tuple[Place, QDockWidget]]:
        return ((place, self._docks[place.name]) for place in self.places)

    @property
    def front(self) -> str:
        return self._front or self._fronts[Region.CENTRE].objectName()

    @property
    def _fronts(self) -> dict[Region, QDockWidget]:
        """The default front dock of each region."""
        found, guests = {}, self._guests
        for region in DOCKED:
            first = min(self._in(region), key=lambda one: one.objectName() in guests, default=None)
            if first is not None:
                found[region] = first
        return found

    @property
    def _guests(self) -> set[str]:
        return {place.name for place in self.places if place.home is not self.workspace}

    def put(self, name: str, panel: QWidget) -> None:
        """Put ``panel`` into the dock and delete the widget it replaces."""
        before = self._docks[name].widget()
        self._docks[name].setWidget(panel)
        if before is not None and before is not panel:
            before.deleteLater()

    def framed(self, name: str, panel: QWidget) -> QWidget:
        """``panel`` in a scroll area, except in the sides, whose panels scroll themselves."""
        region = next(place.region for place in self.places if place.name == name)
        return panel if region in SIDES else Shrinkable(panel)

    def region(self, name: str) -> Region:
        region = next(place.region for place in self.places if place.name == name)
        return Region.BELOW if region is Region.RIGHT and self._folded else region

    def is_seen(self, dock: QDockWidget) -> bool:
        """Whether ``dock`` is in front: Qt moves the other tabs out of the host, and may call them visible."""
        return dock.isVisible() and (dock.isFloating() or self.host.rect().intersects(dock.geometry()))

    def bring_forward(self, name: str) -> None:
        """Show the panel in front of its neighbours' tabs, unless it is closed."""
        region, dock = self.region(name), self._docks[name]
        if region is Region.CENTRE:
            self._front = name
        self._wanted[region] = dock
        _raise(dock)
        self._look_soon()

    def show(self, name: str) -> None:
        dock = self._docks[name]
        if dock.isHidden():
            dock.show()
            self._give_room(dock)
        self.bring_forward(name)

    def unlock(self, on: bool) -> None:
        """Show or hide the title bars and tabs, with which panels are moved, floated and closed."""
        for dock in self._docks.values():
            # None restores the usual title bar; PySide's declaration omits it.
            dock.setTitleBarWidget(None if on else QWidget(dock))  # type: ignore[arg-type]
        # The style sheet hides the tabs of a gallery.
        self.host.setProperty("tabs", "no" if self.workspace.gallery and not on else "yes")
        for bar in self.host.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            bar.style().unpolish(bar)
            bar.style().polish(bar)
            QApplication.sendEvent(bar, QEvent(QEvent.Type.StyleChange))  # Update its size.
            bar.updateGeometry()

    def suit(self, *families: str) -> None:
        """When the ``families`` of the model change, show the panels for them and hide those for others; the user can
        still show them. If the front panel is hidden, raise one for the families. Panels that the user closed stay
        closed until then. While a panel is maximised, :meth:`show_as_before` does this."""
        if self._before is not None:
            self._next_families = families
            return
        before, self.families = self.families, families
        if families == before:
            return
        strange = [place.name for place in self.places if not place.suits(families)]
        for name in strange:
            self._docks[name].hide()
        for place, dock in self:
            if before and place.suits(families) and not place.suits(before):
                dock.show()
        if self.front in strange:
            centre = [place for place in self.places if place.region is Region.CENTRE and place.suits(families)]
            theirs = next((one for one in centre if families[0] in one.families), None)
            other = theirs or next((one for one in centre if not one.families), None)
            if other is not None:
                self.bring_forward(other.name)

    # --- One panel alone --------------------------------------------------------------------------------------------
    @property
    def alone(self) -> bool:
        return self._before is not None

    def show_only(self, name: str) -> None:
        self._before = self.saved()
        for place, dock in self:
            dock.setVisible(place.name == name)

    def show_as_before(self) -> None:
        if self._before is not None:
            self.host.restoreState(self._before, self.version)
            self._before = None
            families, self._next_families = self._next_families or self.families, ()
            self.suit(*families)
            self._fitting.start()
            self._look_soon()

    # --- Saved layouts ------------------------------------------------------------------------------------------------
    @property
    def version(self) -> int:
        return zlib.crc32(" ".join(("workspaces", *(place.name for place in self.places))).encode()) & 0x7FFFFFFF

    def saved(self) -> QByteArray:
        """The layout, for :meth:`restore`; while a panel is maximised, the layout before."""
        return self._before if self._before is not None else self.host.saveState(self.version)

    def restore(self, layout: object) -> None:
        """Apply a saved layout, or the default one if it does not fit. Before the window is shown, call this only
        once: from a replaced layout Qt leaves a tab bar over the menu bar."""
        if not (isinstance(layout, QByteArray) and self.host.restoreState(layout, self.version)):
            self.default_layout()

    def default_layout(self) -> None:
        self._before, self._front, self._wide = None, "", None
        fronts = self._arrange()
        for name, dock in self._docks.items():
            dock.setVisible(name not in self._guests)
        self._wanted = dict(fronts)
        for dock in fronts.values():
            _raise(dock)
        families, self.families, self._next_families = self._next_families or self.families, (), ()
        if families:
            self.suit(*families)
        self._share_out(fronts)
        self._look_soon()

    def _arrange(self) -> dict[Region, QDockWidget]:
        """Put the docks at their default places, hidden; returns the front dock of each region."""
        host = self.host
        for dock in self._docks.values():
            dock.setFloating(False)
            host.removeDockWidget(dock)
        fronts = self._fronts
        if self._is_narrow and {Region.RIGHT, Region.BELOW} <= set(fronts):
            del fronts[Region.RIGHT]
        # All in one area: between two areas, Qt distributes extra room arbitrarily.
        row = [fronts[region] for region in (Region.LEFT, Region.CENTRE, Region.RIGHT) if region in fronts]
        for before, dock in itertools.zip_longest((None, *row[:-1]), row):
            if before is None:
                host.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
            else:
                host.splitDockWidget(before, dock, Qt.Orientation.Horizontal)
        if Region.BELOW in fronts:
            host.splitDockWidget(fronts[Region.CENTRE], fronts[Region.BELOW], Qt.Orientation.Vertical)
        for region, front in fronts.items():
            docks = [front, *(one for one in self._in(region) if one is not front)]
            if region is Region.BELOW and Region.RIGHT not in fronts:
                docks += self._in(Region.RIGHT)
            for before, dock in itertools.pairwise(docks):
                host.tabifyDockWidget(before, dock)
        return fronts

    def _in(self, region: Region) -> Iterator[QDockWidget]:
        return (self._docks[place.name] for place in self.places if place.region is region)

    @property
    def _shares(self) -> dict[Region, int]:
        unit, width = self.host.fontMetrics().height(), self.host.width()
        return {
            Region.LEFT: min(max(int(width * 0.25), 17 * unit), 21 * unit),
            Region.RIGHT: min(max(int(width * 0.17), 14 * unit), 20 * unit),
        }

    def _share_out(self, fronts: dict[Region, QDockWidget]) -> None:
        width = max(self.host.width(), 50 * self.host.fontMetrics().height())
        self.kept = {
            fronts[one]: wanted for one, wanted in self._shares.items() if one in fronts and not fronts[one].isHidden()
        }
        rest = width - sum(self.kept.values())
        self.host.resizeDocks(
            [*self.kept, fronts[Region.CENTRE]], [*self.kept.values(), rest], Qt.Orientation.Horizontal
        )
        self._share_height()

    def _share_height(self) -> None:
        fronts = self._fronts
        if Region.BELOW in fronts and not fronts[Region.BELOW].isHidden():
            below = round(1000 * self.workspace.below)
            self.host.resizeDocks(
                [fronts[Region.CENTRE], fronts[Region.BELOW]], [1000 - below, below], Qt.Orientation.Vertical
            )


def _raise(dock: QDockWidget) -> None:
    """Put ``dock`` in front of its neighbours' tabs. Qt ignores a dock that was raised last, although its tab may be
    newer (as in a hidden window)."""
    if not dock.isFloating():
        dock.lower()
    dock.raise_()
