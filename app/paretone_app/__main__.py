"""Start the application: ``python -m paretone_app`` or ``paretone-gui``.

The window comes first; slow imports (pyqtgraph, then torch on the engine's thread) follow after the first paint."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import gc
import importlib
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    gc.disable()  # See collecting_later().

try:
    import shiboken6

    with contextlib.suppress(ImportError):  # Another version.
        feature: Any = importlib.import_module("shibokensupport.feature")
        # Spare PySide reading the source of every module imported from now on, torch's too, for ``from __feature__``.
        feature.feature_imported = lambda module: None
    import qasync
    from PySide6.QtCore import (
        QLocale,
        QMessageLogContext,
        QSettings,
        QSocketNotifier,
        Qt,
        QtMsgType,
        qInstallMessageHandler,
    )
    from PySide6.QtGui import QIcon, QPixmapCache
    from PySide6.QtWidgets import QApplication
except ModuleNotFoundError as missing:  # A machine without a window system.
    sys.exit(
        f"The window needs {(missing.name or '').partition('.')[0]}, which is not installed; run: pip install "
        "'paretone[app]'. The command line (paretone) and Python work without it."
    )

from paretone import __version__
from paretone.audio import sound_system
from paretone.database import LockedError
from paretone.errors import DeviceError, PlainError
from paretone.own_process import cap_threads, handling, leave_deleted_folder, share_one_heap
from paretone.paths import resource
from paretone.reading import printable
from paretone.session.events import AudioReady, EngineReady, Event, ModelLoaded
from paretone_app import numbers
from paretone_app.shell.theme import EMBLEM

if TYPE_CHECKING:
    from paretone_app.shell.only_window import Calls
    from paretone_app.shell.window import MainWindow


_IMPORTED = time.monotonic()


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    cap_threads()
    share_one_heap()
    leave_deleted_folder()
    if sys.stderr is not None:
        faulthandler.enable(all_threads=True)
    if options.headless_tour:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    there = QApplication.instance()
    if isinstance(there, QApplication):
        application = there
    else:
        with told_of_no_display():
            application = QApplication(sys.argv[:1])
    application.setApplicationName("paretone")
    application.setApplicationDisplayName("Paretone")
    application.setApplicationVersion(__version__)
    application.setDesktopFileName("paretone")
    application.setWindowIcon(QIcon(str(resource("icons", f"{EMBLEM}.svg"))))
    application.setQuitOnLastWindowClosed(False)
    numbers.use_sign(QLocale().decimalPoint())
    with contextlib.ExitStack() as first:
        calls = None
        if not options.headless_tour:  # The tour has no window and must not take over the user's.
            from paretone_app.shell.only_window import first_on

            try:
                calls = first.enter_context(first_on(_data(options.data), options.path))
            except PlainError as error:
                print(error, file=sys.stderr if error.exit_code else sys.stdout, flush=True)
                return error.exit_code
        first.enter_context(collecting_later())
        settings = first.enter_context(settings_file(options))
        with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
            return runner.run(_run(application, options, settings, calls))


@contextlib.contextmanager
def collecting_later() -> Iterator[None]:
    """Collect no garbage until :func:`settle`: what a start makes stays, and looking through it takes long."""
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


def settle(window: MainWindow) -> None:
    """Exempt what is there from collections, which stop frames: once ``window`` is built, and again with the engine."""

    def built() -> None:
        gc.freeze()
        gc.enable()

    def follow(event: Event) -> None:
        if isinstance(event, EngineReady):
            window.bridge.happened.disconnect(follow)
            gc.freeze()

    window.built.connect(built)
    window.bridge.happened.connect(follow)


@contextlib.contextmanager
def told_of_no_display() -> Iterator[None]:
    """Without a display, where Qt would abort, print a sentence and exit with the exit code of a missing device.
    Other messages of Qt are printed unchanged."""
    said: list[str] = []

    def hear(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        if kind is not QtMsgType.QtFatalMsg:
            said.append(message)
            return
        reason = next((one for one in said if "could not connect" in one), said[-1] if said else message)
        sentence = (
            f"Paretone cannot open its window: {reason.strip().rstrip('.')}. Start it on a desktop, with DISPLAY set "
            "for a remote one (ssh -X), or use the command line (paretone --help). On Linux the package "
            "libxcb-cursor0 has to be installed."
        )
        print(sentence, file=sys.stderr, flush=True)
        os._exit(DeviceError.exit_code)

    before = qInstallMessageHandler(hear)
    try:
        yield
    finally:
        qInstallMessageHandler(before)
        if sys.stderr is not None:
            sys.stderr.writelines(f"Qt: {one}\n" for one in said)


@contextlib.contextmanager
def settings_file(options: argparse.Namespace) -> Iterator[str]:
    """The settings file of the options; for the headless tour a temporary one, with default settings."""
    if options.settings or not options.headless_tour:
        yield options.settings
    else:
        with tempfile.TemporaryDirectory(prefix="paretone-tour-") as folder:
            yield str(Path(folder) / "window.ini")


async def _run(application: QApplication, options: argparse.Namespace, settings: str, calls: Calls | None) -> int:
    window = make_window(application, options.data, settings)
    catch_exceptions(window)
    tell_qt_messages(window)
    settle(window)
    ended_by = close_on_signals(window)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: _report_task(window, context))
    closed = loop.create_future()
    window.closed.connect(lambda: None if closed.done() else closed.set_result(None))
    if options.measure_start:
        window.painted.connect(lambda: _print_milestone("window painted"))
        window.built.connect(lambda: _print_milestone("all panels built"))
        window.bridge.happened.connect(_print_engine_milestone)
    if not options.headless_tour and not options.path:
        from paretone_app.shell.greeting import Greeting

        Greeting(window, window.settings)
    if options.theme:
        from paretone_app.shell.theme import Scheme

        window.theme.apply(Scheme(options.theme))
    if options.path:
        open_path(window, options.path)
    if calls is not None:
        sound_system.ask()  # No earlier: it would put off the first paint.
    window.show()
    if calls is not None:
        answer_calls(window, calls)
    code = 0
    if options.headless_tour:
        from paretone_app.shell.headless_tour import headless_tour

        try:
            await headless_tour(window, Path(options.headless_tour), options.steps, print)
        except Exception as error:  # Close the window in any case and show the reason.
            traceback.print_exc()
            print(f"The tour stopped: {error}", file=sys.stderr)
            code = 1
        window.close()
    await closed
    return 128 + ended_by[0] if ended_by else code  # As in shells.


def open_path(window: MainWindow, path: str) -> None:
    """Use a file or folder as if dropped on ``window``, once its panels are built."""
    from paretone_app.features.dropping import DroppingPresenter

    def use() -> None:
        if not window.closing:
            window.action.attempt(lambda: window.features.find(DroppingPresenter).open(Path(path).absolute()))

    if window.is_built:
        use()
    else:
        window.built.connect(use, Qt.ConnectionType.SingleShotConnection)


def answer_calls(window: MainWindow, calls: Calls) -> None:
    """Answer requests of later windows on the same data, until this one closes."""
    from paretone_app.features.takes.presenter import TakesPresenter

    def answer(path: str) -> bool:
        if window.closing:
            return False
        if window.isMinimized():
            window.showNormal()
        window.show()
        window.raise_()
        window.activateWindow()
        if path:
            open_path(window, path)
        return True

    def move(folder: Path) -> None:
        with contextlib.suppress(OSError, LockedError):
            calls.take(folder)

    calls.answer = answer
    window.features.find(TakesPresenter).moved.connect(move)


def make_window(application: QApplication, data: str = "", settings: str = "") -> MainWindow:
    """The main window on the user's or the given data folder and settings file."""
    from paretone.session.engine_thread import EngineThread
    from paretone_app.shell.theme import Theme
    from paretone_app.shell.window import MainWindow

    # Kilobytes. The default, 10,240, fills with unused icons in small pieces, which keep the surrounding memory from
    # being released (resources/docs/endurance.md).
    QPixmapCache.setCacheLimit(2048)
    folder = _data(data)
    file = Path(settings) if settings else folder / "window.ini"
    return MainWindow(Theme(application), QSettings(str(file), QSettings.Format.IniFormat), folder, EngineThread)


def _data(given: str) -> Path:
    from paretone_app.shell.only_window import chosen_folder

    return Path(given) if given else chosen_folder()


def close_on_signals(window: MainWindow) -> list[int]:
    """Close the window as its user does, saving everything, at Ctrl-C, SIGTERM, and as its terminal is closed; returns
    the signals that came, so far none."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        return came

    handled = contextlib.ExitStack()
    handled.enter_context(handling(came.append))
    # Python handles signals between its own instructions, and a waiting window executes none.
    reading, writing = socket.socketpair()
    for end in (reading, writing):
        end.setblocking(False)
    waked = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    notifier = QSocketNotifier(reading.fileno(), QSocketNotifier.Type.Read, window)

    def wake() -> None:
        with contextlib.suppress(BlockingIOError):
            reading.recv(4096)
        if came:
            window.close()

    def let_go() -> None:
        notifier.setEnabled(False)
        signal.set_wakeup_fd(waked)
        handled.close()
        reading.close()
        writing.close()

    notifier.activated.connect(wake)
    window.closed.connect(let_go)
    return came


def catch_exceptions(window: MainWindow) -> None:
    """Report uncaught exceptions of every thread in the window's banner and log, and on stderr."""

    def tell(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        details = "".join(traceback.format_exception(kind, error, trace))
        if sys.stderr is not None:
            sys.stderr.write(printable(details))
        if shiboken6.isValid(window):
            window.unexpected_happened.emit(f"{kind.__name__}: {error}", details)

    sys.excepthook = tell
    threading.excepthook = lambda one: tell(one.exc_type, one.exc_value, one.exc_traceback)


_NOISE = "propagateSizeHints", "Received text event for invalid interface"
"""Messages of Qt to ignore: the offscreen platform's for windows, accessibility's for rich-text labels."""


def tell_qt_messages(window: MainWindow) -> None:
    """Send Qt's messages from every thread to the window's log, and warnings also to stderr; ignore ``_NOISE``."""

    def tell(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        if any(noise in message for noise in _NOISE):
            return
        if kind is not QtMsgType.QtDebugMsg and sys.stderr is not None:
            sys.stderr.write(printable(f"Qt: {message}\n"))
        if shiboken6.isValid(window):
            window.qt_said.emit(message)

    qInstallMessageHandler(tell)


def _report_task(window: MainWindow, context: dict) -> None:
    error = context.get("exception")
    details = "".join(traceback.format_exception(error)) if error is not None else ""
    window.unexpected_happened.emit(str(context.get("message")), details)


def _print_milestone(what: str) -> None:
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        elapsed = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, IndexError, ValueError):  # Not on Linux.
        elapsed = time.monotonic() - _IMPORTED
    used = time.process_time()
    print(f"{what}: {elapsed:.3f} s after process start, {used:.3f} s of processor time", flush=True)


def _print_engine_milestone(event: Event) -> None:
    """Print milestones of the engine; ``AudioReady`` repeats per piece of audio, the first is heard at once."""
    if isinstance(event, EngineReady | ModelLoaded | AudioReady):
        _print_milestone(type(event).__name__)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="paretone-gui", description="Accelerate text-to-speech and hear what it costs."
    )
    parser.add_argument(
        "path",
        nargs="?",
        default="",
        metavar="FILE",
        help="use this as if it were dropped on the window: a recording as voice, a text, an exported profile, a "
        "study, or a folder with a model",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("--data", default="", metavar="FOLDER", help="keep takes, calibrations and settings here")
    parser.add_argument("--settings", default="", metavar="FILE", help="remember the window's layout in this file")
    parser.add_argument(
        "--measure-start",
        action="store_true",
        help="print when the window appeared, the model was loaded, and audio was ready",
    )
    parser.add_argument(
        "--headless-tour",
        default="",
        metavar="FOLDER",
        help="do the main job without a display: write WAV files, the profile and a picture of the window",
    )
    parser.add_argument(
        "--steps", type=int, default=0, metavar="N", help="solver steps of the tour (default: the model's)"
    )
    parser.add_argument("--theme", choices=("system", "light", "dark"), default="", help="colours (default: the last)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
