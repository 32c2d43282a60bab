"""The main window: assembles presenters, workspaces and bars. Panels that need pyqtgraph are built after the first
paint, one per turn of the event loop. Closing stops the engine and waits for its thread without blocking."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSettings, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent, QKeySequence, QPaintEvent
from PySide6.QtWidgets import QMainWindow, QWidget

from paretone.session.commands import Command, ShutDown
from paretone.session.events import ENDINGS, Event, JobCancelled, JobFailed, ModelLoaded
from paretone.setting.plan import imported
from paretone_app.features.feature import Feature, main_job, tour_stops
from paretone_app.features.presenter import Presenters, Services
from paretone_app.features.registry import FEATURES
from paretone_app.results.reader import Results
from paretone_app.shell import menus as pages
from paretone_app.shell import regions
from paretone_app.shell.actions import Actions
from paretone_app.shell.bars import Header, Rail, StatusLine
from paretone_app.shell.bridge import Bridge
from paretone_app.shell.menus import Menus, VisibleMnemonics
from paretone_app.shell.notices import Notices
from paretone_app.shell.regions import Regions
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.workspaces import Workspaces, add_bar, bars_of, recolour
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs
from paretone_app.widgets.screen_readers import announce

if TYPE_CHECKING:
    from paretone.session.engine_thread import EngineThread

_LOADING = "loading"
"""Settings key of the model being loaded at the start; removed once loaded."""
_FRAME = 12
"""Most pixels of a window's frame on each side; three times as many at the top with the title."""


class MainWindow(QMainWindow):
    painted = Signal()
    built = Signal()
    closed = Signal()
    unexpected_happened = Signal(str, str)
    """An exception that nothing caught, on any thread: summary and traceback."""
    qt_said = Signal(str)
    """A message from Qt, on any thread."""

    def __init__(
        self,
        theme: Theme,
        settings: QSettings,
        data_folder: Path,
        make_engine: Callable[[Callable[[Event], None]], EngineThread],
        features: Sequence[Feature] = FEATURES,
    ) -> None:
        super().__init__()
        self.theme = theme
        self.settings = settings
        self._make_engine = self.make_own_engine = make_engine
        self.declared = tuple(features)
        self._engine: EngineThread | None = None
        self._leaving: list[EngineThread] = []
        """Engines that end after another took their place."""
        self._was_painted = False
        self.first: Callable[[], object] | None = None
        """Called after the first paint instead of what starts the engine and builds the other panels."""
        self.is_built = False
        self._closing = False
        self.is_closed = False
        self.setWindowTitle("Paretone")
        self.setAccessibleName("Paretone")
        scheme = str(settings.value("theme", Scheme.SYSTEM.value))
        # Before there are widgets: each is styled once, and icons are drawn in one colour.
        theme.apply(Scheme(scheme) if scheme in {one.value for one in Scheme} else Scheme.SYSTEM)

        self.bridge = Bridge(self)
        self.jobs = Jobs(self._submit, self)
        self.state = AppState(self.jobs, self)
        self.results = Results(self.state, data_folder, self)
        self.action = Actions(self, self.state.undo_stack, [one for feature in features for one in feature.actions])
        self.workspaces = Workspaces(self, [place for feature in features for place in feature.places])
        self.header = Header(self.state, self.action.cancel, self.action.queue)
        add_bar(self, "header", "What speaks", self.header)
        self.rail = Rail({one: self.action.workspace[one] for one in self.workspaces.there}, theme.colours)
        add_bar(self, "rail", "Workspaces", self.rail, Qt.ToolBarArea.LeftToolBarArea)
        self.regions = Regions(self)
        self.status = StatusLine(self, self.jobs)
        self.notices = Notices(self, self.jobs, self.workspaces)
        self.features = self._make_presenters(features, data_folder)
        self._menus = Menus(
            self, self.action, self.workspaces, theme, [one for feature in features for one in feature.menus]
        )
        VisibleMnemonics(self)  # After the menu bar: it sees the keys first.
        self._connect()
        self._restore()
        self._follow_theme()
        later = {name: presenter for presenter in self.features.values() for name in presenter.later}
        # Front ones first: Qt loses the place of a panel whose neighbours' hidden tabs were filled before it.
        fronts = [place.name for place in self.workspaces.shown.places]
        self._to_build = deque(sorted(later.items(), key=lambda one: one[0] not in fronts))

    @property
    def panels(self) -> dict[str, QWidget]:
        return self.workspaces.panels

    # --- Assembly -----------------------------------------------------------------------------------------------------
    def _make_presenters(self, features: Sequence[Feature], data_folder: Path) -> Presenters:
        made = Presenters()
        services = Services(
            self,
            self.state,
            self.results,
            self.action,
            self.workspaces,
            self.notices,
            self.status,
            self.theme,
            self.settings,
            data_folder,
            main_job(features),
            tour_stops(features),
            [one.terms for one in features if one.terms],
            [(one.places[0], *keys) for one in features if one.places for keys in one.keys],
            made,
        )
        for feature in features:
            presenter = feature.presenter
            made[feature.name] = (imported(presenter) if isinstance(presenter, str) else presenter)(services)
        return made

    def _connect(self) -> None:
        state, bridge, action, notices = self.state, self.bridge, self.action, self.notices
        bridge.happened.connect(self._handle)
        bridge.progress.connect(self.status.show_progress)
        bridge.telemetry.connect(self.header.show_telemetry)
        for presenter in self.features.values():
            bridge.progress.connect(presenter.show_progress)
            bridge.telemetry.connect(presenter.show_telemetry)
            bridge.reports.connect(presenter.show_reports)
        state.selection.model_changed.connect(lambda: self.workspaces.suit(*state.selection.entry.families))
        action.failed.connect(notices.warn)
        self.results.problem.connect(notices.warn)
        action.bind(action.default_layout, self.workspaces.default_layout)
        action.unlock.toggled.connect(self.workspaces.unlock)
        action.bind(action.message, notices.banner.focus)
        action.bind(action.next_region, self._go_on)
        action.bind(action.previous_region, lambda: self._go_on(backwards=True))
        action.bind(action.maximise, self.workspaces.maximise)
        self.workspaces.changed.connect(self._show_workspace)
        self.workspaces.changed.connect(lambda: announce(self, self.workspaces.current.title))
        action.bind(action.first_steps, lambda: pages.show_first_steps(self, self.declared))
        action.bind(action.about, lambda: pages.show_about(self, state.machine.title))
        action.bind(action.quit, self.close)
        self.qt_said.connect(notices.note_qt, Qt.ConnectionType.QueuedConnection)
        self.unexpected_happened.connect(notices.unexpected, Qt.ConnectionType.QueuedConnection)
        self.theme.changed.connect(self._follow_theme)
        self.jobs.changed.connect(self._save_selection)  # A killed window starts again with what was asked for.
        # Last, after all other listeners.
        for signal in (
            state.machine.changed,
            state.selection.model_changed,
            state.selection.changed,
            state.comparison.changed,
            self.jobs.changed,
            *(presenter.changed for presenter in self.features.values()),
            # If the wanted model cannot be loaded yet, tick the present one again.
            action.model_wanted,
        ):
            signal.connect(self._refresh)

    # --- Saved state --------------------------------------------------------------------------------------------------
    def _restore(self) -> None:
        settings = self.settings
        geometry = settings.value("geometry")
        if not (isinstance(geometry, QByteArray) and self.restoreGeometry(geometry)):
            # Leave room for the frame, whose size is unknown before it is shown.
            available = self.screen().availableSize() - QSize(2 * _FRAME, 4 * _FRAME)
            self.resize(QSize(1440, 900).boundedTo(available))
        layout = self.layout()
        if layout is not None:
            layout.activate()
        self.workspaces.restore(settings, self.workspaces.size)
        self._show_workspace()
        self.notices.say("")
        self.state.selection.passed_over.connect(self.notices.warn)
        self.state.selection.recall(str(settings.value("selection", "")), str(settings.value(_LOADING, "")))

    def _save(self) -> None:
        self.settings.remove(_LOADING)
        self.settings.setValue("theme", self.theme.scheme.value)
        self.settings.setValue("geometry", self.saveGeometry())
        self.workspaces.save(self.settings)
        self._save_selection()
        self.settings.sync()

    def _save_selection(self) -> None:
        self.settings.setValue("selection", self.state.selection.remembered())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Say why the key's action is disabled. Escape, with nothing to cancel, dismisses a message."""
        if event.key() == Qt.Key.Key_Escape and not self.jobs.running and self.notices.banner.dismiss_newest():
            return
        reason = self.action.why_not(QKeySequence(event.keyCombination()))
        if reason:
            self.status.say(reason)
        else:
            super().keyPressEvent(event)

    # --- Around the workspaces ----------------------------------------------------------------------------------------
    def _show_workspace(self) -> None:
        current = self.workspaces.current
        self.rail.show_current(current)
        self.header.show_figures(current.figures)
        self.setWindowTitle(f"{current.title} · Paretone")

    def _go_on(self, backwards: bool = False) -> None:
        """Go to a waiting message, or to the next part of the window."""
        heads, feet = (
            bars_of(self, area) for area in (Qt.ToolBarArea.TopToolBarArea, Qt.ToolBarArea.BottomToolBarArea)
        )
        banner = self.notices.banner
        self.regions.go_on([banner, *heads, self.rail, *self.workspaces.parts, *feet], banner, backwards)

    # --- First paint, then the rest ---------------------------------------------------------------------------------
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._was_painted:
            self._was_painted = True
            QTimer.singleShot(0, self._after_first_paint)

    def _after_first_paint(self) -> None:
        self.workspaces.enter()
        self.painted.emit()
        if self.first is None:
            self.start_engine()
            self.build_panels()
        else:
            self.first()

    def start_engine(self) -> None:
        if self._engine is not None or self._closing:
            return
        self._begin_engine()
        for presenter in self.features.values():
            presenter.engine_starts()
        # If the process dies while loading, for lack of memory, the next start chooses another model.
        self.settings.setValue(_LOADING, self.state.selection.model_id)
        self.settings.sync()
        self.state.loading.reload()

    def use_engine(self, make: Callable[[Callable[[Event], None]], EngineThread]) -> None:
        """Continue with another engine, and load the model there; the present one cancels its jobs and ends."""
        self._make_engine = make
        if self._engine is None or self._closing:
            return
        self._engine.submit(ShutDown(0))
        self._leaving.append(self._engine)
        self._begin_engine()
        self.state.loading.move()

    def _begin_engine(self) -> None:
        self.status.say("Starting the engine…")
        current: list[EngineThread] = []

        def post(event: Event) -> None:
            # One that leaves only ends its jobs.
            if not current or self._engine is current[0] or isinstance(event, ENDINGS):
                self.bridge.post(event)

        self._engine = self._make_engine(post)
        current.append(self._engine)
        self._engine.start()

    def build_panels(self) -> None:
        """Build the panels that the first paint did not need, one per turn of the event loop."""
        if self._closing:
            return
        if self._to_build:
            # Schedule first, so that a panel that fails to build does not stop the others.
            QTimer.singleShot(0, self.build_panels)
            name, presenter = self._to_build.popleft()
            self.workspaces.put(name, presenter.later[name]())
            presenter.refresh()
        else:
            self._follow_theme()
            self.workspaces.shown.keep_sides()
            feet = bars_of(self, Qt.ToolBarArea.BottomToolBarArea)
            regions.follow([self.rail, self.header, *self.workspaces.reading_order, *feet])
            self.is_built = True
            focus = self.focusWidget()
            if focus is None or self.header.isAncestorOf(focus):
                self.workspaces.enter()  # The front panel was not there at the first paint.
            for presenter in self.features.values():
                presenter.panels_built()
            self.built.emit()

    # --- Events -------------------------------------------------------------------------------------------------------
    def _submit(self, command: Command) -> None:
        if self._engine is not None:
            self._engine.submit(command)

    def _handle(self, event: Event) -> None:
        """Update the state first, then the presenters, then the job."""
        if isinstance(event, ModelLoaded | JobFailed | JobCancelled):
            self.settings.remove(_LOADING)
        self.notices.record(event)
        self.status.follow(event)
        self.state.follow(event)
        for presenter in self.features.values():
            presenter.follow(event)
        self.jobs.handle(event)

    def _refresh(self) -> None:
        self.action.refresh()
        for presenter in self.features.values():
            presenter.refresh()
        self.header.refresh()
        self.workspaces.look_again()
        state = self.state
        self._menus.refresh(state.selection.model_id)
        self._menus.show_devices(state.machine.devices, state.selection.device_wanted)

    def _follow_theme(self) -> None:
        if self.is_closed:
            return
        for panel in (self.rail, *self.workspaces.galleries.values(), *self.panels.values()):
            recolour(panel, self.theme.colours)
        self._refresh()

    # --- Closing ----------------------------------------------------------------------------------------------------
    @property
    def closing(self) -> bool:
        return self._closing or self.is_closed

    def focusNextPrevChild(self, forward: bool) -> bool:
        shown = self.workspaces.shown
        return regions.tab_on(self, forward, [dock for _, dock in shown if not shown.is_seen(dock)])

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.is_closed:
            event.accept()
            return
        event.ignore()
        if self._closing:
            return
        self._closing = True
        self.jobs.close()
        self._save()
        self.status.say("Closing: waiting for the engine to stop…")
        self.setEnabled(False)
        if self._engine is not None:
            self._engine.submit(ShutDown(0))
        # Later: Qt ignores close() from within closeEvent().
        QTimer.singleShot(0, self._wait_for_engine)

    def _wait_for_engine(self) -> None:
        if not all(one.join(0) for one in (*self._leaving, *([self._engine] if self._engine is not None else []))):
            QTimer.singleShot(20, self._wait_for_engine)
            return
        self.is_closed = True
        for presenter in reversed(self.features.values()):
            presenter.shut_down()
        self.results.shut_down()
        self.close()
        self.closed.emit()
