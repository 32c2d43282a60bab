"""The main window: puts presenters, menus and bars together, builds itself in turns, and closes in two phases.

Whatever needs pyqtgraph is built after the first paint, one panel a turn of the event loop, so that the window is
there within a second. Closing asks the engine to stop, waits for its thread without blocking, then closes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QByteArray, QSettings, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QPaintEvent
from PySide6.QtWidgets import QMainWindow, QWidget

from app.features.decoding.presenter import DecodingPresenter
from app.features.demasking.presenter import DemaskingPresenter
from app.features.export.presenter import ProfilePresenter
from app.features.guide.panel import Guide, main_job
from app.features.guide.presenter import GuidePresenter
from app.features.lab.presenter import LabPresenter
from app.features.layers.presenter import LayersPresenter
from app.features.listen.presenter import ListeningPresenter
from app.features.log.panel import Level
from app.features.meters.presenter import SynthesisPresenter
from app.features.presenter import Presenter
from app.features.roofline.presenter import RooflinePresenter
from app.features.setup.presenter import ModelPresenter
from app.features.strategy.presenter import StrategyPresenter
from app.features.studies.presenter import StudiesPresenter
from app.features.tradeoff.presenter import TradeoffPresenter
from app.features.training.presenter import TrainingPresenter
from app.features.transfer.presenter import TransferPresenter
from app.features.views.presenter import ViewsPresenter
from app.shell import help as pages
from app.shell.actions import Actions
from app.shell.bridge import Bridge
from app.shell.docks import Docks, add_bar
from app.shell.menus import Menus
from app.shell.mnemonics import SeenMnemonics
from app.shell.notices import Notices
from app.shell.status_line import StatusLine
from app.shell.theme import Scheme, Theme
from app.state.app_state import AppState
from app.state.calibration_store import CalibrationStore
from app.state.jobs import Jobs, Kind
from app.state.open_studies import OpenStudies
from app.state.take_library import open_library
from engine.session.messages import Command, Event, ShutDown

_JOIN_POLL_MILLISECONDS = 20


class EngineHandle(Protocol):
    """What the window needs of :class:`engine.session.engine_thread.Engine`."""

    def start(self) -> None:
        """Start the thread."""

    def submit(self, command: Command) -> None:
        """Queue a command; may be called before :meth:`start`."""

    def join(self, timeout: float | None = None) -> bool:
        """Wait up to ``timeout`` seconds for the thread to end; whether it has."""


class MainWindow(QMainWindow):
    """The application's one window."""

    painted = Signal()
    """The window was painted for the first time."""
    built = Signal()
    """Every panel exists."""
    closed = Signal()
    """The engine has stopped and the window is closed."""
    unexpected_happened = Signal(str, str)
    """An exception that nothing caught, on any thread: its summary and its traceback."""
    qt_said = Signal(str)
    """A message of Qt itself, from any thread."""

    def __init__(
        self,
        theme: Theme,
        settings: QSettings,
        data_folder: Path,
        make_engine: Callable[[Callable[[Event], None]], EngineHandle],
    ) -> None:
        super().__init__()
        self.theme = theme
        self._settings = settings
        self._make_engine = make_engine
        self._engine: EngineHandle | None = None
        self._was_painted = False
        self.is_built = False
        self._closing = False
        self.is_closed = False
        self.setWindowTitle("Paretone")
        self.setAccessibleName("Paretone")

        self.bridge = Bridge(self)
        self.jobs = Jobs(self._submit, self)
        self.state = AppState(self.jobs, CalibrationStore(data_folder / "calibrations"), self)
        self.open_studies = OpenStudies(self)
        self.action = Actions(self, self.state.undo_stack)
        self.docks = Docks(self)
        self.guide = Guide(main_job(self.action))
        add_bar(self, "steps", "Steps", self.guide)
        self.status = StatusLine(self, self.jobs)
        self.notices = Notices(self, self.jobs, self.docks, theme.colours)
        self._make_presenters(data_folder)
        SeenMnemonics(self)
        self._menus = Menus(self, self.action, self.docks, theme, self._choose_model, self.models.choose_device)
        self._connect()
        self._restore()
        self._refresh()
        self._to_build = deque(
            (name, build) for presenter in self._presenters for name, build in presenter.later.items()
        )

    @property
    def panels(self) -> dict[str, QWidget]:
        """The panels that are built, by the name of their place."""
        return self.docks.panels

    # --- Putting together -------------------------------------------------------------------------------------------
    def _make_presenters(self, data_folder: Path) -> None:
        state, action, docks, notices, theme = self.state, self.action, self.docks, self.notices, self.theme
        self.models = ModelPresenter(self, state, action, docks, notices, theme.colours)
        self.synthesis = SynthesisPresenter(self, state, action, self.status, theme)
        self.strategy = StrategyPresenter(self, state, action, docks, notices, theme)
        self.listening = ListeningPresenter(
            self, state, open_library(data_folder / "takes"), action, docks, notices, theme
        )
        self.views = ViewsPresenter(self, state, action, docks, notices, theme)
        self.transfer = TransferPresenter(self, state, action, docks, theme)
        self.training = TrainingPresenter(self, state, action, docks, notices, theme, data_folder / "training")
        self.models.setup.training_wanted.connect(self.training.propose)
        self.decoding = DecodingPresenter(self, state, self.listening, theme)
        self.layers = LayersPresenter(self, state, action, notices, theme)
        self.demasking = DemaskingPresenter(self, state, action, self.listening, theme)
        self.roofline = RooflinePresenter(self, state, action, notices, theme)
        self.layers.training_wanted.connect(self.training.propose_student)
        for presenter in (self.decoding, self.layers):
            presenter.view_wanted.connect(self.views.open)
        self.profiles = ProfilePresenter(self, state, action, notices)
        self.lab = LabPresenter(self, state, self.listening, action, docks, notices, theme, data_folder / "listening")
        self.studies = StudiesPresenter(
            self,
            state,
            self.listening,
            action,
            docks,
            notices,
            theme,
            self._settings,
            data_folder / "studies",
            self.open_studies,
        )
        self.layers.study_wanted.connect(self.studies.new_of_layers)
        self.tradeoff = TradeoffPresenter(
            self,
            state,
            self.listening,
            self.strategy,
            self.lab,
            self.open_studies,
            action,
            docks,
            notices,
            theme,
            self._settings,
            data_folder / "listening",
        )
        self._presenters: tuple[Presenter, ...] = (
            self.models,
            self.synthesis,
            self.strategy,
            self.listening,
            self.views,
            self.transfer,
            self.training,
            self.decoding,
            self.layers,
            self.roofline,
            self.demasking,
            self.lab,
            self.tradeoff,
            self.studies,
            self.profiles,
            GuidePresenter(self.guide, state, self.listening, self.profiles, action.calibrate),
        )

    def _connect(self) -> None:
        state, bridge, action, notices = self.state, self.bridge, self.action, self.notices
        bridge.happened.connect(self._handle)
        bridge.progress.connect(self.status.show_progress)
        bridge.progress.connect(self.views.show_progress)
        bridge.progress.connect(self.layers.show_progress)
        bridge.progress.connect(self.roofline.show_progress)
        bridge.progress.connect(self.studies.show_progress)
        bridge.telemetry.connect(self.synthesis.show_telemetry)
        bridge.trials.connect(self.strategy.show_trials)
        bridge.similarity.connect(self.strategy.show_similarity)
        state.problem.connect(notices.warn)
        state.model_changed.connect(lambda: self.docks.suit(state.entry.family))
        action.failed.connect(notices.warn)
        action.bind(action.default_layout, self.docks.default_layout)
        action.unlock.toggled.connect(self.docks.unlock)
        action.bind(action.message, notices.go_to_message)
        action.bind(action.keys, lambda: pages.show_keys(self))
        action.bind(action.first_steps, lambda: pages.show_first_steps(self))
        action.bind(action.about, lambda: pages.show_about(self, state.machine))
        action.bind(action.quit, self.close)
        self.qt_said.connect(notices.note_qt, Qt.ConnectionType.QueuedConnection)
        self.unexpected_happened.connect(notices.unexpected, Qt.ConnectionType.QueuedConnection)
        self.theme.changed.connect(self._follow_theme)
        # Last, so that whoever else hears of a change has taken it in.
        for signal in (
            state.engine_changed,
            state.model_changed,
            state.selection_changed,
            state.table_changed,
            state.comparison_changed,
            self.jobs.began,
            self.jobs.ended,
            self.listening.listened,
            self.lab.changed,
            self.profiles.written,
        ):
            signal.connect(self._refresh)

    # --- Between sessions -------------------------------------------------------------------------------------------
    def _restore(self) -> None:
        settings = self._settings
        scheme = str(settings.value("theme", Scheme.SYSTEM.value))
        self.theme.apply(Scheme(scheme) if scheme in {one.value for one in Scheme} else Scheme.SYSTEM)
        geometry = settings.value("geometry")
        if not (isinstance(geometry, QByteArray) and self.restoreGeometry(geometry)):
            available = self.screen().availableSize()
            self.resize(QSize(1440, 900).boundedTo(available))
        self.docks.family = str(settings.value("family", ""))
        self.docks.restore(settings.value("layout"))
        self.notices.say("")
        self.state.recall(str(settings.value("selection", "")))

    def _save(self) -> None:
        self._settings.setValue("theme", self.theme.scheme.value)
        self._settings.setValue("geometry", self.saveGeometry())
        self._settings.setValue("layout", self.docks.saved())
        self._settings.setValue("family", self.docks.family)
        self._settings.setValue("selection", self.state.remembered())
        self._settings.sync()

    # --- First paint, then the rest ---------------------------------------------------------------------------------
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._was_painted:
            self._was_painted = True
            QTimer.singleShot(0, self._after_first_paint)

    @Slot()
    def _after_first_paint(self) -> None:
        self.painted.emit()
        self.start_engine()
        self._build_next()

    def start_engine(self) -> None:
        """Start the engine's thread and have it load the chosen model."""
        if self._engine is not None or self._closing:
            return
        self.status.say("Starting the engine…")
        self._engine = self._make_engine(self.bridge.post)
        self._engine.start()
        self.listening.tell_library_problem()
        for problem in self.state.calibrations.problems:
            self.notices.note(problem, Level.WARNING)
        self.state.load_model(self.state.model_id)

    @Slot()
    def _build_next(self) -> None:
        if self._closing:
            return
        if self._to_build:
            # Asked for first, so that a panel that cannot be built does not take the others with it.
            QTimer.singleShot(0, self._build_next)
            name, build = self._to_build.popleft()
            self._put(name, build())
        else:
            self._follow_theme()
            self.is_built = True
            self.built.emit()

    def _put(self, name: str, panel: QWidget) -> None:
        from app.plotting.menus import adopt_menus

        adopt_menus(panel)
        self.docks.put(name, panel)

    # --- What happens -----------------------------------------------------------------------------------------------
    def _submit(self, command: Command) -> None:
        if self._engine is not None:
            self._engine.submit(command)

    @Slot(object)
    def _handle(self, event: Event) -> None:
        """Tell everyone in turn: first who shows an event, then the state, then who asks what to do about it."""
        self.notices.record(event)
        self.status.follow(event)
        self.listening.follow(event)
        self.views.follow(event)
        self.transfer.follow(event)
        self.profiles.follow(event)
        job = self.jobs.find(event.job)
        self.state.handle(event)
        self.training.follow(event)
        self.layers.follow(event)
        self.roofline.follow(event)
        self.demasking.follow(event)
        self.studies.follow(event)
        self.jobs.handle(event)
        self.models.follow(event, job)

    @Slot()
    def _refresh(self) -> None:
        """Enable what can be done; say why the rest cannot, and what to press next."""
        for presenter in self._presenters:
            presenter.refresh()
        state, running = self.state, self.jobs.running
        self._menus.refresh(state.model_id, not running or running[0].kind is Kind.LOAD)
        self._menus.show_devices(state.devices, state.device_wanted)

    @Slot()
    def _follow_theme(self) -> None:
        for panel in self.panels.values():
            panel.set_colours(self.theme.colours)
        self._refresh()

    def _choose_model(self, model: str) -> None:
        self.models.choose_model(model)
        # A model that cannot be loaded yet leaves the present one chosen, and ticked.
        self._refresh()

    # --- Closing ----------------------------------------------------------------------------------------------------
    def closeEvent(self, event: QCloseEvent) -> None:
        if self.is_closed:
            event.accept()
            return
        event.ignore()
        if self._closing:
            return
        self._closing = True
        self._save()
        self.status.say("Closing: waiting for the engine to stop…")
        self.setEnabled(False)
        if self._engine is not None:
            self._engine.submit(ShutDown(0))
        # Not from within: Qt ignores a window that asks to be closed while it is being asked whether it may.
        QTimer.singleShot(0, self._wait_for_engine)

    @Slot()
    def _wait_for_engine(self) -> None:
        if self._engine is not None and not self._engine.join(0):
            QTimer.singleShot(_JOIN_POLL_MILLISECONDS, self._wait_for_engine)
            return
        self.is_closed = True
        self.lab.shut_down()
        self.tradeoff.shut_down()
        self.studies.shut_down()
        self.listening.shut_down()
        self.close()
        self.closed.emit()
