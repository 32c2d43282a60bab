"""The real window on the real engine with a small real model, for tests of the application."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PySide6.QtCore import QEvent, QSettings, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QComboBox, QLineEdit, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from paretone.audio.sound_system import Sound, probe
from paretone.models import load_model
from paretone.models.base import SpeechModel
from paretone.session.engine_thread import EngineThread
from paretone_app.features.feature import Feature
from paretone_app.features.registry import FEATURES
from paretone_app.shell import banner
from paretone_app.shell.theme import Theme
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.holding import Posts
from tests.app.presenters import Presenter
from tests.app.sharing import Found, found, put_back
from tests.conftest import PatientBot
from tests.engine import small_speech

Widget = TypeVar("Widget", bound=QWidget)
MakeWindow = Callable[..., MainWindow]

PATIENCE_MILLISECONDS = 120_000
"""When a test gives up; never what it measures."""
SMALL = "setup synthesis player listen takes"
"""Features of a window that loads models and makes takes: it is there in a third of the time of a whole one."""


@pytest.fixture(autouse=True)
def _collected_here() -> Iterator[None]:
    """Leave no rubbish to later tests: engines collect it, too, and would end Qt's objects on their own thread."""
    yield
    collect()
    # What is left, PyTorch's two hundred thousand objects for one, is not looked through again.
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_key_stays_pressed() -> Iterator[None]:
    """Qt keeps the modifiers of a test's last key, and would select further rows where the next test selects one."""
    yield
    if QApplication.instance() is not None and QApplication.keyboardModifiers() != Qt.KeyboardModifier.NoModifier:
        QTest.keyRelease(QWidget(), Qt.Key.Key_Control)


@pytest.fixture(autouse=True, scope="module")
def _no_take_is_judged() -> Iterator[None]:
    """Judges need half a second per take: only ``features/takes/test_whole_window.py`` waits for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paretone_app.state.jobs.IDLE_MILLISECONDS", 1000 * 3600)
        yield


@pytest.fixture(autouse=True, scope="session")
def _sound_is_looked_for_once() -> Iterator[None]:
    """One process asks for the devices for all windows, except of a test that has a sound server of its own."""
    usual = cache(probe)

    def found() -> Sound:
        return probe() if {"PULSE_SERVER", "ALSA_CONFIG_PATH"} & set(os.environ) else usual()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paretone_app.features.player.control.probe", found)
        yield


@pytest.fixture(autouse=True, scope="module")
def _messages_stay() -> Iterator[None]:
    """No message goes by itself while a test waits for something else; ``shell/test_notices.py`` lets them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(banner, "LASTING", dict.fromkeys(banner.LASTING, 3600.0))
        yield


def collect() -> None:
    """End what Qt and Python are done with, here and now."""
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()


@pytest.fixture
def presenter(tmp_path: Path, qtbot: QtBot) -> Presenter:
    """The application's state with a model loaded, without any engine."""
    return Presenter(tmp_path / "calibrations")


@pytest.fixture
def posts() -> Iterator[Posts]:
    """By which the windows' engines can be held."""
    made = Posts()
    yield made
    made.go_on()


@pytest.fixture
def make_window(theme: Theme, tmp_path: Path, qapp: QApplication, qtbot: QtBot, posts: Posts) -> Iterator[MakeWindow]:
    """Makes windows with one data folder, one settings file and the small model; closes those that are left open."""
    qapp.setQuitOnLastWindowClosed(False)
    made: list[MainWindow] = []

    def make(load: Callable = small_speech.load, data: Path = tmp_path / "data", parts: str = "") -> MainWindow:
        settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
        made.append(MainWindow(theme, settings, data, lambda post: EngineThread(posts.to(post), load), of(parts)))
        return made[-1]

    yield make
    posts.go_on()
    for window in made:
        if isValid(window) and not window.is_closed:
            close(window, qtbot)


def loading(name: str) -> Callable[..., SpeechModel]:
    """Loads the model called ``name`` as it is, and the small flow model in place of all others."""

    def load(model: str, *given: Any, **named: Any) -> SpeechModel:
        return (load_model if model == name else small_speech.load)(model, *given, **named)

    return load


def of(parts: str) -> Sequence[Feature]:
    return [one for one in FEATURES if not parts or one.name in parts.split()]


def ready(window: MainWindow, qtbot: QtBot) -> MainWindow:
    """``window``, once it is shown, its panels are built and its model is loaded."""
    window.show()
    qtbot.waitUntil(lambda: window.is_built and window.state.selection.ready and not window.jobs.busy)
    return window


def on_screen(widget: Widget, qtbot: QtBot, width: int = 0, height: int = 0) -> Widget:
    """Show ``widget``, in this size if one is given; it is closed after the test."""
    qtbot.addWidget(widget)
    if width:
        widget.resize(width, height)
    widget.show()
    return widget


def in_front(widget: Widget, qtbot: QtBot, width: int = 0, height: int = 0) -> Widget:
    """As ``on_screen``, and as the active window."""
    return activated(on_screen(widget, qtbot, width, height), qtbot)


def activated(widget: Widget, qtbot: QtBot) -> Widget:
    """``widget``, once it is the active window."""
    widget.activateWindow()
    qtbot.waitUntil(widget.isActiveWindow)
    return widget


def typed(field: QAbstractSpinBox | QLineEdit, text: str, qtbot: QtBot) -> None:
    """Type ``text`` over what ``field`` has, and Return."""
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def run(window: MainWindow, action: QAction, qtbot: QtBot) -> Outcome:
    """Outcome of the job that ``action`` starts."""
    qtbot.waitUntil(lambda: not window.jobs.busy)
    with qtbot.waitSignal(window.jobs.ended) as blocker:
        action.trigger()
    return blocker.args[1]


def chosen(box: QComboBox, data: object) -> None:
    """Choose the entry of ``box`` that has ``data``, as the user does."""
    box.setCurrentIndex(box.findData(data))
    box.activated.emit(box.currentIndex())


def close(window: MainWindow, qtbot: QtBot) -> None:
    """Close ``window`` and wait until its engine has stopped."""
    ended: list[bool] = []
    window.closed.connect(lambda: ended.append(True))
    window.close()
    qtbot.waitUntil(lambda: bool(ended) or window.is_closed)
    qtbot.waitUntil(lambda: not window.isVisible())
    window.deleteLater()
    # What Qt ended must be collected before the next window's objects take its addresses: PySide tells them apart by
    # those.
    collect()


@pytest.fixture(scope="module")
def shared_posts() -> Iterator[Posts]:
    """By which the engine of the window that tests share can be held."""
    made = Posts()
    yield made
    made.go_on()


@pytest.fixture(scope="module")
def surroundings(request: pytest.FixtureRequest) -> object:
    """What the shared window needs before: the fixture that the module names in ``BEFORE``, such as a sound server."""
    before = getattr(request.module, "BEFORE", "")
    return request.getfixturevalue(before) if before else None


@pytest.fixture(scope="module")
def loader(request: pytest.FixtureRequest) -> Callable[..., SpeechModel]:
    """Loads the models of the window that tests share: that which the module names in ``LOADS`` as it is."""
    return loading(getattr(request.module, "LOADS", ""))


@pytest.fixture(scope="module")
def parts(request: pytest.FixtureRequest) -> str:
    """Features of the windows of a module: its ``PARTS``, such as :data:`SMALL`; all where it names none."""
    return getattr(request.module, "PARTS", "")


@pytest.fixture(scope="module")
def shared_window(
    theme: Theme,
    qapp: QApplication,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    shared_posts: Posts,
    surroundings: object,
    loader: Callable[..., SpeechModel],
    parts: str,
) -> Iterator[MainWindow]:
    """A window as the fixture ``window`` gives it, for all tests of a module that only look at it, in any order."""
    qapp.setQuitOnLastWindowClosed(False)
    folder, bot = tmp_path_factory.mktemp("shared"), PatientBot(request)
    settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
    made = MainWindow(
        theme, settings, folder / "data", lambda post: EngineThread(shared_posts.to(post), loader), of(parts)
    )
    ready(made, bot)
    # Threads that begin with the first work are there before the first test.
    done: list[object] = []
    for one in (made.results, made.features["player"].deck.analyser.background):
        one.run(lambda: None, done.append)
    if "lab" in made.panels:
        made.panels["lab"].shown.emit()
    bot.waitUntil(lambda: len(done) == 2)
    yield made
    close(made, bot)


@pytest.fixture(scope="module")
def looked_at(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Panels that must look as new after each test that borrows the window: ``LOOKED_AT`` of the module, where Setup
    is left out if takes are made, since it knows then what others cost."""
    return getattr(request.module, "LOOKED_AT", ("setup", "takes"))


@pytest.fixture(scope="module")
def _shared_as_new(shared_window: MainWindow, looked_at: tuple[str, ...]) -> Found:
    return found(shared_window, looked_at)


@pytest.fixture
def borrowed_window(
    shared_window: MainWindow, looked_at: tuple[str, ...], _shared_as_new: Found, shared_posts: Posts, qtbot: QtBot
) -> Iterator[MainWindow]:
    """The same window for a test that changes it; afterwards it is as it was when it was new."""
    yield shared_window
    shared_posts.go_on()
    put_back(shared_window, _shared_as_new, looked_at, qtbot)


@pytest.fixture
def window(make_window: MakeWindow, parts: str, qtbot: QtBot) -> Iterator[MainWindow]:
    """A shown window whose panels are built and whose small model is loaded."""
    made = ready(make_window(parts=parts), qtbot)
    yield made
    close(made, qtbot)
