"""The main window: docks, menus, shortcuts, status bar; builds itself in turns and closes in two phases.

Whatever needs pyqtgraph is built after the first paint, one panel a turn of the event loop, so that the window is
there within a second. Closing asks the engine to stop, waits for its thread without blocking, then closes.
"""

from __future__ import annotations

import json
import tempfile
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QByteArray, QSettings, QSize, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import (
    QAction,
    QActionGroup,
    QCloseEvent,
    QDesktopServices,
    QKeySequence,
    QPaintEvent,
)
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QDockWidget,
    QFileDialog,
    QLabel,
    QMainWindow,
    QMenu,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QTabWidget,
    QTextBrowser,
    QToolBar,
    QVBoxLayout,
    QWidget,
)

from app.banner import Banner
from app.bridge import Bridge
from app.calibrations import CalibrationStore
from app.guide import Guide, Step
from app.jobs import Job, Jobs, Kind, Outcome
from app.panels.log import Level, LogPanel
from app.panels.setup import SetupPanel
from app.panels.takes import TakesPanel
from app.state import DITREDUCIO, AppState
from app.theme import Scheme, Theme
from app.wav import write_wav
from engine import __version__
from engine.errors import PlainError
from engine.library import Library
from engine.messages import (
    AudioReady,
    CalibrationReady,
    Command,
    EngineReady,
    EngineStatus,
    Event,
    JobFailed,
    LoadModel,
    ModelLoaded,
    Progress,
    ShutDown,
    SimilarityMeasured,
    Telemetry,
    TrialDone,
)
from engine.models import catalogue
from engine.take import Take
from engine.techniques import wording
from engine.techniques.ditreducio.table import StrategyTable

if TYPE_CHECKING:
    from app.panels.attention import AttentionPanel
    from app.panels.listen import ListenPanel
    from app.panels.meters import MetersPanel
    from app.panels.strategy import StrategyPanel
    from app.panels.threshold import ThresholdPanel

LAYOUT_VERSION = 1
"""Raised when docks are added or renamed; layouts saved under another version are passed over."""

_JOIN_POLL_MILLISECONDS = 20


class EngineThread(Protocol):
    """What the window needs of :class:`engine.worker.Engine`."""

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
    exported = Signal(str)
    """A profile was written to this path."""
    unexpected_happened = Signal(str, str)
    """An exception that nothing caught, on any thread: its summary and its traceback."""

    qt_said = Signal(str)
    """A message of Qt itself, from any thread."""

    def __init__(
        self,
        theme: Theme,
        settings: QSettings,
        data_folder: Path,
        make_engine: Callable[[Callable[[Event], None]], EngineThread],
    ) -> None:
        super().__init__()
        self.theme = theme
        self._settings = settings
        self._make_engine = make_engine
        self._engine: EngineThread | None = None
        self._was_painted = False
        self.is_built = False
        self._closing = False
        self.is_closed = False
        self._exported = False
        self._compared = False
        self._streaming = 0
        self._undecided: LoadModel | None = None
        self.setWindowTitle("Paretone")
        self.setDockNestingEnabled(True)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.setAccessibleName("Paretone")

        self.bridge = Bridge(self)
        self.jobs = Jobs(self._submit, self)
        self.library, self._library_problem = open_library(data_folder / "takes")
        self.state = AppState(self.jobs, CalibrationStore(data_folder / "calibrations"), self)
        self.meters: MetersPanel | None = None
        self.strategy: StrategyPanel | None = None
        self.threshold: ThresholdPanel | None = None
        self.attention: AttentionPanel | None = None
        self.listen: ListenPanel | None = None

        self._make_actions()
        self._make_tool_bars()
        self._make_status_bar()
        self._make_docks()
        self._make_menus()
        self._connect()
        self._restore()
        self._refresh()
        self._to_build = deque(
            (self._build_meters, self._build_strategy, self._build_threshold, self._build_attention, self._build_listen)
        )

    # --- Building ---------------------------------------------------------------------------------------------------
    def _action(self, text: str, tip: str, shortcut: str = "", slot: Callable[[], object] | None = None) -> QAction:
        action = QAction(text, self)
        action.setToolTip(tip)
        action.setStatusTip(tip)
        if shortcut:
            action.setShortcut(QKeySequence(shortcut))
        if slot is not None:
            action.triggered.connect(lambda: self._guarded(slot))
        self.addAction(action)
        return action

    def _make_actions(self) -> None:
        state = self.state
        make = self._action
        self.baseline_action = make(
            "Synthesise &baseline", "Speak the text with every module computed", "Ctrl+B", state.synthesise_baseline
        )
        self.calibrate_action = make(
            "&Calibrate", "Find out what may be skipped under the threshold", "Ctrl+K", state.calibrate
        )
        self.accelerated_action = make(
            "Synthesise &accelerated",
            "Speak the text with the engaged techniques",
            "Ctrl+Return",
            state.synthesise_accelerated,
        )
        self.cancel_action = make("Ca&ncel", "Cancel what runs", "Esc", self.cancel)
        self.export_action = make(
            "&Export profile…", "Write the setting with its evidence to one file", "Ctrl+E", self.export_profile
        )
        self.compare_action = make(
            "&Play and switch A/B", "Play; while playing, switch between A and B", "Ctrl+Space", self._compare
        )
        self.play_action = make("Play or &pause", "Play or pause the sounding take", "Ctrl+P", self._play)
        self.set_a_action = make("Set selected take as &A", "Compare with this take as A", "Ctrl+1")
        self.set_b_action = make("Set selected take as &B", "Compare with this take as B", "Ctrl+2")
        self.swap_action = make("S&wap A and B", "Exchange A and B", "Ctrl+3", self._swap)
        self.save_wav_action = make(
            "Save A and B as &WAV…", "Write both takes into a folder", "Ctrl+Shift+S", self._ask_where_to_save
        )
        self.import_table_action = make(
            "&Import official table…", "Read the official code's JSON file", "Ctrl+O", self._ask_for_table
        )
        self.export_table_action = make(
            "E&xport official table…",
            "Write the official code's JSON file",
            "Ctrl+Shift+O",
            self._ask_where_to_put_table,
        )
        self.skip_nothing_action = make(
            "Skip &nothing", "Start from a table that computes everything", "Ctrl+Shift+N", self._skip_nothing
        )
        self.undo_action = state.undo_stack.createUndoAction(self, "&Undo")
        self.undo_action.setShortcut(QKeySequence.StandardKey.Undo)
        self.redo_action = state.undo_stack.createRedoAction(self, "&Redo")
        self.redo_action.setShortcut(QKeySequence("Ctrl+Shift+Z"))
        for action in (self.undo_action, self.redo_action):
            self.addAction(action)
        self.reload_action = make("&Reload", "Load the chosen model again", "Ctrl+R", self._reload)
        self.layout_action = make(
            "&Default layout", "Put all panels where they were at first", "Ctrl+0", self.default_layout
        )
        self.unlock_action = make("&Move panels", "Show title bars to move, float and close panels", "Ctrl+M")
        self.unlock_action.setCheckable(True)
        self.unlock_action.toggled.connect(self.unlock)
        self.message_action = make(
            "Go to &message",
            "Put the focus into the message above the panels, or on its answers",
            "F6",
            self._go_to_message,
        )
        self.keys_action = make("&Keyboard", "Every shortcut", "F1", self._show_keys)
        self.steps_action = make(
            "&First steps", "What Paretone does, in five steps", "Shift+F1", self._show_first_steps
        )
        self.about_action = make("&About Paretone", "Version, machine and licences", "", self._show_about)
        self.data_action = make(
            "Open data &folder", "Where takes and calibrations are kept", "Ctrl+Shift+D", self._open_data_folder
        )
        self.quit_action = make("&Quit", "Cancel what runs and close", "Ctrl+Q", self.close)
        self.quit_action.setMenuRole(QAction.MenuRole.QuitRole)

    def _make_tool_bars(self) -> None:
        self.guide = Guide(
            (
                Step(
                    self.baseline_action,
                    "Baseline",
                    "press <b>Baseline</b> (Ctrl+B) to hear the model speak with every module computed.",
                ),
                Step(
                    self.calibrate_action,
                    "Calibrate",
                    "press <b>Calibrate</b> (Ctrl+K): DiTReducio finds out which modules it may skip.",
                ),
                Step(
                    self.accelerated_action,
                    "Accelerated",
                    "press <b>Accelerated</b> (Ctrl+Return) to speak the same sentence, skipping what the table says.",
                ),
                Step(
                    self.compare_action,
                    "Compare A/B",
                    "press <b>Compare A/B</b> (Ctrl+Space) to play, and again to switch in the middle of a word.",
                ),
                Step(
                    self.export_action,
                    "Export profile",
                    "press <b>Export profile</b> (Ctrl+E): <i>paretone speak --profile</i> runs it anywhere.",
                ),
            )
        )
        bar = QToolBar("Steps", objectName="steps", movable=False)
        bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        bar.addWidget(self.guide)
        bar.toggleViewAction().setVisible(False)
        self.addToolBar(bar)
        self.banner = Banner()
        self.addToolBarBreak()
        message = QToolBar("Message", objectName="message", movable=False)
        message.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        shown = message.addWidget(self.banner)
        message.toggleViewAction().setVisible(False)
        self.addToolBar(message)
        message.hide()
        self.banner.dismissed.connect(message.hide)
        self.banner.dismissed.connect(lambda: shown.setVisible(False))
        self.banner.chosen.connect(self._choose_variant)
        self._banner_action = shown
        self._message_bar = message

    def _make_status_bar(self) -> None:
        bar = self.statusBar()
        self._device = QLabel("starting")
        self._device.setProperty("look", "chip")
        self._device.setAccessibleName("Device: not known yet")
        self._device_shown: tuple[object, ...] = ()
        self._status = QLabel("Opening…")
        self._status.setAccessibleName("Status")
        self._progress = QProgressBar(minimum=0, maximum=100, visible=False)
        self._progress.setAccessibleName("Progress of the running job")
        self._progress.setFixedWidth(self.fontMetrics().height() * 14)
        self._time_left = QLabel()
        self._cancel = QPushButton("Cancel", visible=False)
        self._cancel.setToolTip("Cancel what runs (Esc)")
        self._cancel.clicked.connect(self.cancel)
        bar.addWidget(self._device)
        bar.addWidget(self._status, 1)
        for widget in (self._time_left, self._progress, self._cancel):
            bar.addPermanentWidget(widget)

    def _make_docks(self) -> None:
        self._docks: dict[str, QDockWidget] = {}
        colours = self.theme.colours
        self.setup = SetupPanel(self.state, colours)
        self.takes = TakesPanel(self.library, colours)
        self.log = LogPanel(colours)
        for name, title in (
            ("setup", "Setup"),
            ("strategy", "Strategy"),
            ("threshold", "Threshold"),
            ("attention", "Attention"),
            ("meters", "Meters"),
            ("listen", "Listen"),
            ("takes", "Takes"),
            ("log", "Log"),
        ):
            dock = QDockWidget(title, self, objectName=name)
            dock.setFeatures(
                QDockWidget.DockWidgetFeature.DockWidgetMovable
                | QDockWidget.DockWidgetFeature.DockWidgetFloatable
                | QDockWidget.DockWidgetFeature.DockWidgetClosable
            )
            dock.setWidget(QWidget())
            self._docks[name] = dock
        for name, panel in (("setup", self.setup), ("takes", self.takes), ("log", self.log)):
            self._docks[name].setWidget(panel)
        self.unlock(False)
        self.default_layout()

    @Slot()
    def default_layout(self) -> None:
        """Put the docks where they are at first start."""
        docks = self._docks
        for dock in docks.values():
            dock.setFloating(False)
            self.removeDockWidget(dock)
        left, right = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea
        self.addDockWidget(left, docks["setup"])
        self.addDockWidget(right, docks["strategy"])
        self.splitDockWidget(docks["strategy"], docks["meters"], Qt.Orientation.Horizontal)
        self.splitDockWidget(docks["strategy"], docks["listen"], Qt.Orientation.Vertical)
        self.tabifyDockWidget(docks["strategy"], docks["threshold"])
        self.tabifyDockWidget(docks["threshold"], docks["attention"])
        self.tabifyDockWidget(docks["listen"], docks["takes"])
        self.tabifyDockWidget(docks["takes"], docks["log"])
        for dock in docks.values():
            dock.show()
        docks["strategy"].raise_()
        docks["listen"].raise_()
        unit = self.fontMetrics().height()
        width = max(self.width(), 70 * unit)
        left_width = min(max(int(width * 0.25), 21 * unit), 27 * unit)
        right_width = min(max(int(width * 0.17), 14 * unit), 20 * unit)
        self.resizeDocks(
            [docks["setup"], docks["strategy"], docks["meters"]],
            [left_width, width - left_width - right_width, right_width],
            Qt.Orientation.Horizontal,
        )
        self.resizeDocks([docks["strategy"], docks["listen"]], [1000, 1000], Qt.Orientation.Vertical)

    def unlock(self, on: bool) -> None:
        """Show the panels' title bars, by which they can be moved, floated and closed; or hide them again."""
        for dock in self._docks.values():
            dock.setTitleBarWidget(None if on else QWidget(dock))

    def _make_menus(self) -> None:
        bar = self.menuBar()
        file = bar.addMenu("&File")
        _fill(file, (self.export_action, self.save_wav_action, self.data_action, None, self.quit_action))

        model = bar.addMenu("&Model")
        self._model_actions = QActionGroup(self)
        for entry in catalogue.MODELS:
            action = model.addAction(entry.title)
            action.setCheckable(True)
            action.setData(entry.id)
            action.setToolTip(entry.summary)
            action.triggered.connect(lambda _=False, one=entry.id: self._choose_model(one))
            self._model_actions.addAction(action)
        model.addSeparator()
        self._device_menu = model.addMenu("&Device")
        model.addAction(self.reload_action)

        run = bar.addMenu("&Run")
        _fill(run, (self.baseline_action, self.calibrate_action, self.accelerated_action, None, self.cancel_action))

        compare = bar.addMenu("&Compare")
        _fill(
            compare,
            (self.compare_action, self.play_action, None, self.set_a_action, self.set_b_action, self.swap_action),
        )

        strategy = bar.addMenu("&Strategy")
        _fill(
            strategy,
            (
                self.undo_action,
                self.redo_action,
                None,
                self.import_table_action,
                self.export_table_action,
                self.skip_nothing_action,
            ),
        )

        view = bar.addMenu("&View")
        for index, (name, dock) in enumerate(self._docks.items(), start=1):
            go = self._action(f"Go to {dock.windowTitle()}", f"Show the panel {dock.windowTitle()}", f"Alt+{index}")
            go.triggered.connect(lambda _=False, one=name: self.go_to(one))
            view.addAction(go)
        view.addAction(self.message_action)
        shown = view.addMenu("Shown &panels")
        for dock in self._docks.values():
            shown.addAction(dock.toggleViewAction())
        view.addSeparator()
        themes = view.addMenu("&Theme")
        self._theme_actions = QActionGroup(self)
        for scheme, title, shortcut in (
            (Scheme.SYSTEM, "As the &system", "Ctrl+Shift+T"),
            (Scheme.LIGHT, "&Light", "Ctrl+Shift+L"),
            (Scheme.DARK, "&Dark", "Ctrl+Shift+K"),
        ):
            action = themes.addAction(title)
            action.setShortcut(QKeySequence(shortcut))
            action.setCheckable(True)
            action.setData(scheme.value)
            action.triggered.connect(lambda _=False, one=scheme: self.theme.apply(one))
            self._theme_actions.addAction(action)
        view.addAction(self.unlock_action)
        view.addAction(self.layout_action)

        help_menu = bar.addMenu("&Help")
        _fill(help_menu, (self.steps_action, self.keys_action, None, self.about_action))

    def _connect(self) -> None:
        state, bridge = self.state, self.bridge
        bridge.happened.connect(self._handle)
        bridge.progress.connect(self._show_progress)
        bridge.telemetry.connect(self._show_telemetry)
        bridge.trials.connect(self._show_trials)
        bridge.similarity.connect(self._show_similarity)
        self.jobs.began.connect(self._job_began)
        self.jobs.ended.connect(self._job_ended)
        for signal in (state.engine_changed, state.model_changed, state.selection_changed, state.table_changed):
            signal.connect(self._refresh)
        for signal in (state.table_changed, state.model_changed):
            signal.connect(self._show_table)
        state.comparison_changed.connect(self._show_comparison)
        state.take_added.connect(self._keep_take)
        state.problem.connect(self.warn)
        self.setup.problem.connect(self.warn)
        self.setup.download_wanted.connect(self._ask_to_download)
        self.takes.a_chosen.connect(lambda take: state.set_a(take))
        self.takes.b_chosen.connect(lambda take: state.set_b(take))
        self.takes.rerun_wanted.connect(self._rerun)
        self.takes.problem.connect(self.warn)
        self.set_a_action.triggered.connect(self.takes.set_a)
        self.set_b_action.triggered.connect(self.takes.set_b)
        self.theme.changed.connect(self._follow_theme)
        self.qt_said.connect(
            lambda message: self.log.add(Level.DETAIL, f"Qt: {message}"), Qt.ConnectionType.QueuedConnection
        )
        self.unexpected_happened.connect(self.unexpected, Qt.ConnectionType.QueuedConnection)

    def _restore(self) -> None:
        settings = self._settings
        scheme = str(settings.value("theme", Scheme.SYSTEM.value))
        self.theme.apply(Scheme(scheme) if scheme in {one.value for one in Scheme} else Scheme.SYSTEM)
        geometry = settings.value("geometry")
        if not (isinstance(geometry, QByteArray) and self.restoreGeometry(geometry)):
            available = self.screen().availableSize()
            self.resize(QSize(1440, 900).boundedTo(available))
        layout = settings.value("layout")
        if not (isinstance(layout, QByteArray) and self.restoreState(layout, LAYOUT_VERSION)):
            self.default_layout()
        self.banner.dismiss()
        self.state.recall(str(settings.value("selection", "")))

    def _save(self) -> None:
        self._settings.setValue("theme", self.theme.scheme.value)
        self._settings.setValue("geometry", self.saveGeometry())
        self._settings.setValue("layout", self.saveState(LAYOUT_VERSION))
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
        self._status.setText("Starting the engine…")
        self._engine = self._make_engine(self.bridge.post)
        self._engine.start()
        if self._library_problem:
            self.warn(self._library_problem)
        for problem in self.state.calibrations.problems:
            self.log.add(Level.WARNING, problem)
        self.state.load_model(self.state.model_id)

    @Slot()
    def _build_next(self) -> None:
        if self._closing:
            return
        if self._to_build:
            # Asked for first, so that a panel that cannot be built does not take the others with it.
            QTimer.singleShot(0, self._build_next)
            self._to_build.popleft()()
        else:
            self._follow_theme()
            self._show_table()
            self._show_comparison()
            self.is_built = True
            self.built.emit()

    def _place(self, name: str, panel: QWidget) -> None:
        from app.plot_menus import adopt_menus

        adopt_menus(panel)
        placeholder = self._docks[name].widget()
        self._docks[name].setWidget(panel)
        placeholder.deleteLater()

    def _build_meters(self) -> None:
        from app.panels.meters import MetersPanel

        self.meters = MetersPanel(self.theme.colours)
        self.meters.show_device(self._device.text())
        self._place("meters", self.meters)

    def _build_listen(self) -> None:
        from app.listening.player import Player
        from app.panels.listen import ListenPanel

        self.listen = ListenPanel(Player(), self.theme.colours)
        self._place("listen", self.listen)
        self.listen.playing_changed.connect(self._heard_something)
        self.listen.problem_changed.connect(self._audio_problem)
        self.listen.connect_device()

    # --- Strategy, threshold, attention -----------------------------------------------------------------------------
    def _build_strategy(self) -> None:
        from app.panels.strategy import StrategyPanel

        self.strategy = StrategyPanel(self.theme.colours, self.state.undo_stack)
        self.strategy.table_edited.connect(self.state.adopt_table)
        self.strategy.import_wanted.connect(self.import_table_action.trigger)
        self.strategy.export_wanted.connect(self.export_table_action.trigger)
        self._place("strategy", self.strategy)

    def _build_threshold(self) -> None:
        from app.panels.threshold import ThresholdPanel

        self.threshold = ThresholdPanel(self.theme.colours)
        self.threshold.threshold_changed.connect(self.state.set_threshold)
        self.threshold.calibration_wanted.connect(self._calibrate_at)
        self._place("threshold", self.threshold)

    def _build_attention(self) -> None:
        from app.panels.attention import AttentionPanel

        self.attention = AttentionPanel(self.theme.colours)
        self.attention.capture_wanted.connect(self._capture_attention)
        self.state.attention_captured.connect(self.attention.show_capture)
        self._place("attention", self.attention)

    @Slot(int, int)
    def _capture_attention(self, layer: int, step: int) -> None:
        if self.attention is None:
            return
        if self.jobs.busy:
            self.attention.show_failure(
                "Wait for the running job, or press Esc to cancel it; then choose the cell again."
            )
            return
        try:
            self.state.capture_attention(layer, step)
        except PlainError as error:
            self.attention.show_failure(str(error))
        else:
            self.attention.begin_capture(layer, step)

    @Slot()
    def _show_table(self) -> None:
        """Show the strategy table and what follows from it in every panel that does."""
        state = self.state
        if self.strategy is not None:
            self.strategy.set_operations(state.operations)
            self.strategy.set_times(state.step_times)
            self.strategy.set_table(state.table)
            self.strategy.set_other(state.other_table)
        if self.threshold is not None:
            self.threshold.set_operations(state.operations)
            self.threshold.set_record(state.record)
        if self.attention is not None:
            self.attention.set_times(state.step_times)
            if state.record is not None:
                self.attention.set_similarities(state.record.similarities, state.record.cut)
            elif state.info is not None and "steps" in state.options:
                self.attention.set_layout(state.info.layers, int(state.options["steps"]))

    @Slot()
    def _show_threshold(self) -> None:
        if self.threshold is not None:
            self.threshold.set_metric(str(self.state.knobs(DITREDUCIO)["metric"]))
            self.threshold.set_threshold(self.state.threshold)
            self.threshold.set_busy(not self.calibrate_action.isEnabled())

    @Slot(float)
    def _calibrate_at(self, threshold: float) -> None:
        self.state.set_threshold(threshold)
        self.calibrate_action.trigger()

    @Slot(object)
    def _show_trials(self, events: tuple[TrialDone, ...]) -> None:
        trials = tuple(event.trial for event in events if self.jobs.find(event.job) is not None)
        if trials and self.strategy is not None:
            self.strategy.add_trials(trials)

    @Slot(object)
    def _show_similarity(self, event: SimilarityMeasured) -> None:
        if self.jobs.find(event.job) is None:
            return
        if self.strategy is not None:
            self.strategy.add_similarities(event.similarities)
        if self.attention is not None:
            self.attention.set_similarities(event.similarities)

    def _calibration_began(self) -> None:
        state = self.state
        if state.info is not None and self.strategy is not None:
            self._docks["strategy"].raise_()
            self.strategy.begin_calibration(state.info.layers, int(state.options["steps"]))

    def _calibration_ended(self) -> None:
        if self.strategy is not None:
            self.strategy.end_calibration()
        self._show_table()

    # --- Listening --------------------------------------------------------------------------------------------------
    def _compare(self) -> None:
        """Play what is compared; while it plays, switch to the other take."""
        if self.listen is None:
            return
        self._docks["listen"].raise_()
        self._compared = True
        if self.listen.player.playing:
            self.listen.switch()
        else:
            self.listen.toggle_play()
        self._refresh()

    def _play(self) -> None:
        if self.listen is not None:
            self.listen.toggle_play()

    def _play_piece(self, event: AudioReady) -> None:
        """Play a piece of a synthesis that still runs."""
        if self.listen is None:
            return
        if self._streaming != event.job:
            self._end_stream()
            self._streaming = event.job
            self.listen.begin_stream(event.sample_rate)
        self.listen.append(event.samples)

    def _end_stream(self) -> None:
        if self._streaming and self.listen is not None:
            self.listen.end_stream()
        self._streaming = 0

    def _show_takes_to_hear(self) -> None:
        if self.listen is None:
            return
        state = self.state
        self.listen.set_take("A", state.take_a)
        self.listen.set_take("B", state.take_b)
        self.listen.set_aligned(all(one is None or self._keeps_timing(one) for one in (state.take_a, state.take_b)))
        self.listen.set_warning(state.comparison_warning())
        shown = [f"{wording(one.what)}: {one.left} → {one.right}" for one in state.differences()]
        self.listen.set_difference("A → B   " + "   ".join(shown) if shown else "")

    @staticmethod
    def _keeps_timing(take: Take) -> bool:
        try:
            return catalogue.entry(take.setting.model).family in ("flow", "masked")
        except PlainError:
            return False

    @Slot(bool)
    def _heard_something(self, playing: bool) -> None:
        if playing and self.state.take_a is not None and self.state.take_b is not None and not self._streaming:
            self._compared = True
            self._refresh()

    @Slot(str)
    def _audio_problem(self, sentence: str) -> None:
        if sentence:
            self.log.add(Level.WARNING, sentence)

    # --- Events -----------------------------------------------------------------------------------------------------
    def _submit(self, command: Command) -> None:
        if self._engine is not None:
            self._engine.submit(command)

    @Slot(object)
    def _handle(self, event: Event) -> None:
        if isinstance(event, EngineStatus):
            self._status.setText(event.text)
            self.log.add(Level.DETAIL, event.text)
        elif isinstance(event, EngineReady):
            self.log.add(Level.INFO, f"The engine is ready: {event.machine}")
        elif isinstance(event, ModelLoaded):
            self.log.add(Level.INFO, f"Loaded {event.info.title} in {event.seconds:.1f} s on {event.info.device}")
        elif isinstance(event, JobFailed):
            self.log.add(Level.ERROR, event.sentence)
            if event.details:
                self.log.add(Level.DETAIL, event.details)
        elif isinstance(event, CalibrationReady):
            record = event.record
            self.log.add(
                Level.INFO,
                f"Calibrated {record.table.layers} × {record.table.steps} cells with {len(record.trials)} trials in "
                f"{event.seconds:.1f} s; {record.table.skipped_share:.0%} skip at threshold {record.threshold:g}",
            )
        elif isinstance(event, AudioReady):
            self._play_piece(event)
        job = self.jobs.find(event.job)
        self.state.handle(event)
        self.jobs.handle(event)
        if isinstance(event, JobFailed) and event.candidates and job is not None and job.kind is Kind.LOAD:
            self._ask_for_variant(job.command, event)

    @Slot(object)
    def _job_began(self, job: Job) -> None:
        if job.kind is not Kind.LOAD:
            self.banner_say("")
        self.log.add(Level.INFO, f"{job.kind.value}…")
        self._status.setText(f"{job.kind.value}…")
        self._progress.setRange(0, 0)
        self._time_left.clear()
        if job.kind is Kind.CALIBRATE:
            self._calibration_began()
        self._show_busy()
        self._refresh()

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        self._time_left.clear()
        if job.number == self._streaming:
            self._end_stream()
        if outcome is Outcome.FAILED:
            kept = self.state.info if job.kind is Kind.LOAD else None
            self.warn(f"{sentence} {kept.title} stays loaded." if kept else sentence, "error")
        self._status.setText(f"{job.kind.value}: {outcome.value}")
        self.log.add(Level.INFO, f"{job.kind.value}: {outcome.value}")
        if job.kind is Kind.DOWNLOAD and outcome is Outcome.FINISHED:
            self.state.load_model(job.command.model)
        if job.kind is Kind.CALIBRATE:
            self._calibration_ended()
        if job.kind is Kind.ATTENTION and outcome is not Outcome.FINISHED and self.attention is not None:
            self.attention.show_failure(sentence or "The capture was cancelled; choose the cell again.")
        self._show_busy()
        self._refresh()

    def _ask_for_variant(self, command: LoadModel, event: JobFailed) -> None:
        """Nothing says which architecture a checkpoint has: let the user say it, and load again."""
        self._undecided = command
        self._show_message()
        self.banner.ask(event.sentence, event.candidates)

    @Slot(str)
    def _choose_variant(self, variant: str) -> None:
        if self._undecided is not None:
            command, self._undecided = self._undecided, None
            self.state.load_model(command.model, command.folder, variant, command.device)

    @Slot(object)
    def _show_progress(self, event: Progress) -> None:
        job = self.jobs.find(event.job)
        if job is None:
            return
        self._progress.setRange(0, max(1, event.total))
        self._progress.setValue(event.done)
        left = event.seconds_left
        self._time_left.setText("" if left is None else f"about {_duration(left)} left")
        if event.text:
            self._status.setText(event.text)

    @Slot(object)
    def _show_telemetry(self, event: Telemetry) -> None:
        if self.meters is not None and self.jobs.find(event.job) is not None:
            self.meters.show_telemetry(event)

    def _show_busy(self) -> None:
        busy = self.jobs.busy
        self._progress.setVisible(busy)
        self._cancel.setVisible(busy)

    @Slot(str)
    def warn(self, sentence: str, level: str = "warning") -> None:
        """Show a sentence in the banner and write it to the log."""
        if level == "warning":
            self.log.add(Level.WARNING, sentence)
        self.banner_say(sentence, level)

    def banner_say(self, sentence: str, level: str = "warning") -> None:
        """Show ``sentence`` in the banner, or hide the banner when it is empty."""
        if sentence:
            self._show_message()
            self.banner.say(sentence, level)
        else:
            self.banner.dismiss()

    def _show_message(self) -> None:
        self._banner_action.setVisible(True)
        self._message_bar.show()

    def _go_to_message(self) -> None:
        if self.banner.isVisible():
            self.banner.focus()

    @property
    def status(self) -> str:
        """The line in the status bar."""
        return self._status.text()

    @Slot(str, str)
    def unexpected(self, summary: str, details: str) -> None:
        """Tell of an exception that nothing caught. The application goes on."""
        self.log.add(Level.ERROR, details)
        self.banner_say(
            f"Something unexpected went wrong ({summary}). You can go on; the log has the details for a report.",
            "error",
        )

    def _guarded(self, slot: Callable[[], object]) -> None:
        """Run what an action does; a problem that the user can act on goes to the banner."""
        self.setup.commit()
        try:
            slot()
        except PlainError as error:
            self.warn(str(error))

    # --- Showing ----------------------------------------------------------------------------------------------------
    @Slot()
    def _refresh(self) -> None:
        """Enable what can be done; say why the rest cannot, and what to press next."""
        state, busy = self.state, self.jobs.busy
        waiting = "Wait for the running job, or press Esc to cancel it." if busy else ""
        for action, reason in (
            (self.baseline_action, state.why_not_synthesise()),
            (self.calibrate_action, state.why_not_calibrate()),
            (self.accelerated_action, state.why_not_accelerate()),
        ):
            action.setEnabled(not reason and not busy)
            action.setToolTip(reason or waiting or action.statusTip())
        two = state.take_a is not None and state.take_b is not None
        any_take = state.take_a is not None or state.take_b is not None
        self.cancel_action.setEnabled(busy)
        self.export_action.setEnabled(state.ready and not state.why_not_accelerate())
        self.export_action.setToolTip(state.why_not_accelerate() or self.export_action.statusTip())
        self.compare_action.setEnabled(any_take and self.listen is not None)
        self.play_action.setEnabled(any_take and self.listen is not None)
        self.swap_action.setEnabled(two)
        self.save_wav_action.setEnabled(any_take)
        self.import_table_action.setEnabled(state.ready)
        self.export_table_action.setEnabled(state.table is not None)
        self.skip_nothing_action.setEnabled(state.ready and state.belonging() is not None)
        self.reload_action.setEnabled(not busy)
        for action in self._model_actions.actions():
            action.setChecked(action.data() == state.model_id)
            action.setEnabled(not busy or self.jobs.running[0].kind is Kind.LOAD)
        for action in self._theme_actions.actions():
            action.setChecked(action.data() == self.theme.scheme.value)
        self._show_device()
        self._show_threshold()
        self._show_guide()

    def _show_device(self) -> None:
        state = self.state
        text = state.info.device if state.info is not None else state.device.upper() or "starting"
        shown = text, state.device_wanted, state.devices
        if self._device_shown == shown:
            return
        self._device_shown = shown
        self._device.setText(text)
        self._device.setAccessibleName(f"Device: {text}")
        self._device.setToolTip(f"The model runs on {text}.\n{state.machine}")
        if self.meters is not None:
            self.meters.show_device(text)
        self._device_menu.clear()
        group = QActionGroup(self._device_menu)
        for name in ("auto", *state.devices):
            action = self._device_menu.addAction(name if name == "auto" else name.upper())
            action.setCheckable(True)
            action.setChecked(name == state.device_wanted)
            action.triggered.connect(lambda _=False, one=name: self._choose_device(one))
            group.addAction(action)

    def _show_guide(self) -> None:
        state = self.state
        accelerated = state.take_b is not None and bool(state.take_b.setting.techniques)
        done = (
            state.take_a is not None and not state.take_a.setting.techniques,
            state.table is not None and not state.table_problem(),
            accelerated,
            self._compared and accelerated,
            self._exported,
        )
        instead = ""
        if self.jobs.busy:
            instead = f"{self.jobs.running[0].kind.value}… You can look around meanwhile; <b>Esc</b> cancels."
        elif not state.ready:
            instead = "The model is not loaded. Choose one under <b>Model</b> on the left."
        self.guide.show_progress(done, instead)

    @Slot()
    def _show_comparison(self) -> None:
        state = self.state
        self.takes.show_comparison(state.take_a, state.take_b)
        if self.meters is not None:
            self.meters.show_comparison(state.take_a, state.take_b)
        self._show_takes_to_hear()
        if state.comparison_warning():
            self.log.add(Level.WARNING, state.comparison_warning())
        self._refresh()

    @Slot(object)
    def _keep_take(self, take: Take) -> None:
        if self.meters is not None:
            self.meters.show_take(take)
        for note in take.notes:
            self.warn(note)
        try:
            self.takes.add(self.library.add(take))
        except PlainError as error:
            self.warn(str(error), "error")

    @Slot()
    def _follow_theme(self) -> None:
        colours = self.theme.colours
        for panel in (
            self.setup,
            self.takes,
            self.log,
            self.meters,
            self.strategy,
            self.threshold,
            self.attention,
            self.listen,
        ):
            if panel is not None:
                panel.set_colours(colours)
        self._refresh()

    def go_to(self, name: str) -> None:
        """Show the dock ``name`` and put the focus into it."""
        dock = self._docks[name]
        dock.show()
        dock.raise_()
        panel = dock.widget()
        chain = [panel]
        while (following := chain[-1].nextInFocusChain()) is not panel:
            chain.append(following)
        for one in chain:
            reachable = one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isEnabled() and one.isVisibleTo(panel)
            if reachable and (one is panel or panel.isAncestorOf(one)):
                one.setFocus(Qt.FocusReason.ShortcutFocusReason)
                return

    # --- What the menus do ------------------------------------------------------------------------------------------
    @Slot()
    def cancel(self) -> None:
        """Cancel everything that runs or waits."""
        if self.jobs.busy:
            self._status.setText("Cancelling…")
            self.jobs.cancel_all()

    def _choose_model(self, model: str) -> None:
        self.setup.model.setCurrentIndex(self.setup.model.findData(model))
        self.setup.model.activated.emit(self.setup.model.currentIndex())
        self._refresh()

    def _choose_device(self, device: str) -> None:
        state = self.state
        state.load_model(state.model_id, state.model_folder, state.model_variant, device)

    def _reload(self) -> None:
        state = self.state
        state.load_model(state.model_id, state.model_folder, state.model_variant)

    def _swap(self) -> None:
        take_a, take_b = self.state.take_a, self.state.take_b
        self.state.set_a(take_b)
        self.state.set_b(take_a)

    def _rerun(self, take: Take) -> None:
        self._guarded(lambda: self.state.use_setting(take))
        self.go_to("setup")

    def _skip_nothing(self) -> None:
        state = self.state
        belonging = state.belonging()
        if belonging is not None and state.info is not None:
            branch_skip = str(state.knobs(DITREDUCIO)["branch_skip"])
            state.replace_table(StrategyTable.computing(belonging, state.info.layers, branch_skip), "skip nothing")

    def _ask_for_table(self) -> None:
        dialog = self._file_dialog("Official strategy table", QFileDialog.AcceptMode.AcceptOpen, "JSON (*.json)")
        dialog.fileSelected.connect(lambda path: self._guarded(lambda: self.import_table(Path(path))))
        dialog.open()

    def import_table(self, path: Path) -> None:
        """Use the official strategy table in ``path``. Raises :class:`PlainError` when it cannot be used."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PlainError(f"{path} cannot be read ({error}).") from error
        self.state.import_table(text, path.name)

    def _ask_where_to_put_table(self) -> None:
        dialog = self._file_dialog("Official strategy table", QFileDialog.AcceptMode.AcceptSave, "JSON (*.json)")
        table = self.state.table
        dialog.selectFile(f"{table.steps}_{self.state.threshold:g}.json")
        dialog.fileSelected.connect(lambda path: self._guarded(lambda: self.export_table(Path(path))))
        dialog.open()

    def export_table(self, path: Path) -> None:
        """Write the strategy table in the official form. Raises :class:`PlainError` when it cannot be written."""
        if self.state.table is None:
            raise PlainError("There is no strategy table to export yet: calibrate first.")
        try:
            path.write_text(json.dumps(self.state.table.to_official()), encoding="utf-8")
        except OSError as error:
            raise PlainError(f"{path} cannot be written ({error.strerror}); choose another folder.") from error
        self.log.add(Level.INFO, f"Wrote {path}")

    def _ask_where_to_save(self) -> None:
        dialog = self._file_dialog("Folder for the WAV files", QFileDialog.AcceptMode.AcceptOpen, "")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(lambda folder: self._guarded(lambda: self.save_wavs(Path(folder))))
        dialog.open()

    def save_wavs(self, folder: Path) -> tuple[Path, ...]:
        """Write A and B into ``folder``. Raises :class:`PlainError` when they cannot be written."""
        written = []
        for name, take in (("a", self.state.take_a), ("b", self.state.take_b)):
            if take is not None:
                path = folder / f"take-{name}-{take.id}.wav"
                write_wav(path, take.samples, take.sample_rate)
                written.append(path)
                self.log.add(Level.INFO, f"Wrote {path}")
        return tuple(written)

    def export_profile(self) -> None:
        """Ask where the profile shall go."""
        from app.export.profile_dialog import ProfileDialog

        dialog = ProfileDialog(self.state, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.written.connect(self._profile_written)
        dialog.open()

    def write_profile(self, path: Path) -> None:
        """Export the present setting to ``path`` without asking. Raises :class:`PlainError` when it cannot be done."""
        self.state.write_profile(path)
        self._profile_written(str(path))

    @Slot(str)
    def _profile_written(self, path: str) -> None:
        self._exported = True
        self.log.add(Level.INFO, f"Wrote the profile {path}")
        self.banner_say(
            f"The profile is in {path}. Run it: paretone speak --profile {path} --text “…” --out out.wav", "info"
        )
        self._refresh()
        self.exported.emit(path)

    @Slot(str)
    def _ask_to_download(self, model: str) -> None:
        entry = catalogue.entry(model)
        box = QMessageBox(self)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle(f"Download {entry.title}")
        box.setText(f"The weights of {entry.title} are published under <b>{entry.licence}</b>.")
        box.setInformativeText(f"Do you accept this licence and download them to {entry.folder}?")
        box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.No)
        box.button(QMessageBox.StandardButton.Yes).setText("Accept and download")
        box.accepted.connect(lambda: self.state.download_model(model, str(entry.folder)))
        box.open()

    def _file_dialog(self, title: str, mode: QFileDialog.AcceptMode, kinds: str) -> QFileDialog:
        dialog = QFileDialog(self, title, filter=f"{kinds};;All files (*)" if kinds else "")
        dialog.setAcceptMode(mode)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog

    def _open_data_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.library.folder)))

    def _show_keys(self) -> None:
        rows = []
        for action in self.findChildren(QAction):
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            if keys:
                rows.append((action.text().replace("&", "").rstrip("…"), keys))
        body = "".join(
            f"<tr><td style='padding-right:2em'>{name}</td><td><b>{keys}</b></td></tr>" for name, keys in rows
        )
        self._show_page("Keyboard", f"<h3>Keyboard</h3><table>{body}</table>{_PANEL_KEYS}")

    def _show_first_steps(self) -> None:
        self._show_page("First steps", _FIRST_STEPS)

    def _show_about(self) -> None:
        self._show_page(
            "About Paretone",
            f"<h3>Paretone {__version__}</h3><p>{self.state.machine or 'The engine is still starting.'}</p>"
            "<p>Licence: Apache-2.0. The weights of each model have their own licence, shown in Setup.</p>",
        )

    def _show_page(self, title: str, html: str) -> None:
        dialog = QDialog(self, windowTitle=title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        page = QTextBrowser()
        page.setAccessibleName(title)
        page.setHtml(html)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(dialog.close)
        layout = QVBoxLayout(dialog)
        layout.addWidget(page)
        layout.addWidget(buttons)
        unit = self.fontMetrics().height()
        dialog.resize(unit * 34, unit * 36)
        dialog.open()

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
        self._status.setText("Closing: waiting for the engine to stop…")
        self.setEnabled(False)
        if self._engine is not None:
            self._engine.submit(ShutDown(0))
        self._wait_for_engine()

    @Slot()
    def _wait_for_engine(self) -> None:
        if self._engine is not None and not self._engine.join(0):
            QTimer.singleShot(_JOIN_POLL_MILLISECONDS, self._wait_for_engine)
            return
        self.is_closed = True
        if self.listen is not None:
            self.listen.close()
        self.library.close()
        self.close()
        self.closed.emit()


def open_library(folder: Path) -> tuple[Library, str]:
    """The take library in ``folder``, or one for this session only; and a sentence about what is wrong, or ``""``."""
    try:
        library = Library(folder)
    except (PlainError, OSError) as error:
        temporary = Path(tempfile.mkdtemp(prefix="paretone-takes-"))
        return Library(temporary), f"{error} Until then takes are kept in {temporary}."
    if library.damage:
        return library, (
            f"The take library in {folder} is damaged and can only be read ({library.damage}). "
            "New takes can be heard and saved as WAV, but the history does not keep them."
        )
    return library, ""


def _fill(menu: QMenu, actions: Iterable[QAction | None]) -> None:
    """Put ``actions`` into ``menu``, a separator for each ``None``."""
    for action in actions:
        menu.addSeparator() if action is None else menu.addAction(action)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


_PANEL_KEYS = """
<h3>In the panels</h3><table>
<tr><td style='padding-right:2em'>Strategy: move in the table</td><td><b>Arrow keys</b></td></tr>
<tr><td>Strategy: cycle a cell: compute, temporal skip, branch skip</td><td><b>Space</b></td></tr>
<tr><td>Threshold: move δ; further</td><td><b>Left, Right; with Shift</b></td></tr>
<tr><td>Attention: capture the chosen cell</td><td><b>Space</b></td></tr>
<tr><td>Attention: pan, zoom, show all</td><td><b>Arrow keys, + and −, 0</b></td></tr>
<tr><td>Listen: hear A, hear B, switch</td><td><b>A, B, X</b></td></tr>
<tr><td>Listen: play or pause</td><td><b>Space</b></td></tr>
<tr><td>Listen: back and forth; by smaller steps</td><td><b>Left, Right; with Shift</b></td></tr>
<tr><td>Listen: to the start</td><td><b>Home</b></td></tr>
<tr><td>Listen: loop on or off; its start, its end here</td><td><b>L; [, ]</b></td></tr>
<tr><td>Listen: zoom in, out, show all</td><td><b>+, −, 0</b></td></tr>
<tr><td>Takes: star, run again, save as WAV, show file, delete</td><td><b>S, R, W, V, Del</b></td></tr>
<tr><td>Everywhere: next and previous control</td><td><b>Tab, Shift+Tab</b></td></tr>
</table>"""

_FIRST_STEPS = """
<h3>What Paretone does</h3>
<p>Diffusion text-to-speech computes much that hardly changes from step to step. DiTReducio finds out what can be
skipped, and Paretone lets you hear what that costs.</p>
<ol>
<li><b>Baseline</b>: speak a sentence with every module computed.</li>
<li><b>Calibrate</b>: each layer and step is tried; what stays under the threshold δ is skipped from then on.</li>
<li><b>Accelerated</b>: speak the same sentence, from the same noise, skipping what the strategy table says.</li>
<li><b>Compare</b>: play, and switch between A and B in the middle of a word; the loudness is matched.</li>
<li><b>Export</b>: the profile holds the setting, the table and the evidence, and runs from the command line.</li>
</ol>
<p>Drag δ in the Threshold panel: the table follows at once. A table that is only predicted says so and offers the
calibration that confirms it.</p>"""
