"""Common set-up of all tests: no screen, no access to the user's data, few threads, and none left behind."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pytestqt.qtbot import QtBot

from tests.collecting import LONGEST_FILES, ByFile, import_in_turns
from tests.workload import VARIABLE

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication, QWidget
    from pytestqt.wait_signal import SignalBlocker

    from paretone_app.shell.theme import Theme

# Before anything imports Qt or torch: both read these once.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("OMP_NUM_THREADS", "1")
_DATA = Path(tempfile.mkdtemp(prefix="paretone-tests-"))
(_DATA / "shared").mkdir()
os.environ["PARETONE_DATA"] = str(_DATA / "shared")
# A shell lets what it starts in the background ignore Ctrl-C, and every process that a test starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
_NUMBERS = itertools.count()
pytest_plugins = [f"tests.{name}" for name in ("disk", "judges", "prompts", "screen", "sound")]
"""Modules with fixtures for all tests."""

PATIENCE_SECONDS = 120.0
"""Seconds that a test waits for a thread to end, or for an event."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="run long repetitions and workloads in full")


def pytest_configure(config: pytest.Config) -> None:
    """Tell it to the test modules, which count before there is a fixture, and to the processes that share the tests."""
    if config.getoption("--thorough"):
        os.environ[VARIABLE] = "1"


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect the tests, not garbage: what is imported and made meanwhile stays."""
    gc.disable()
    try:
        import_in_turns(session.config)
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile | None:
    """Divide the longest files among the processes as well."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest begin first, so that no process ends long after the others."""
    places = {name: place for place, name in enumerate(LONGEST_FILES)}
    root = Path(__file__).parent
    items.sort(key=lambda item: places.get(item.path.relative_to(root).as_posix(), len(places)))


def pytest_unconfigure() -> None:
    shutil.rmtree(_DATA, ignore_errors=True)


class PatientBot(QtBot):
    """Gives up only where nothing comes any more: five seconds, as it is elsewhere, can pass on a busy machine."""

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = round(1000 * PATIENCE_SECONDS)) -> None:
        super().waitUntil(callback, timeout=timeout)

    def waitSignal(
        self, signal: object, *, timeout: int = round(1000 * PATIENCE_SECONDS), **options: object
    ) -> SignalBlocker:
        return super().waitSignal(signal, timeout=timeout, **options)

    def waitExposed(self, widget: QWidget, *, timeout: int = round(1000 * PATIENCE_SECONDS)) -> AbstractContextManager:
        return super().waitExposed(widget, timeout=timeout)


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    """Takes the place of the one that pytest-qt has."""
    return PatientBot(request)


@pytest.fixture(scope="session")
def theme(qapp: QApplication) -> Theme:
    """The application's one theme: of several, each would take what it applied last for what is shown."""
    from paretone_app.shell.theme import Theme

    return Theme(qapp)


@pytest.fixture(autouse=True, scope="module")
def _what_stays_is_not_collected() -> None:
    """The collector looks through what a module's tests make, not through a million objects of libraries each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test finds the user's folder empty. (Pytest would search all former folders to name one more.)"""
    folder = _DATA / str(next(_NUMBERS))
    folder.mkdir()
    monkeypatch.setenv("PARETONE_DATA", str(folder))


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    """Fail a test that leaves a thread behind which would keep the process alive."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + PATIENCE_SECONDS
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
    left = [one.name for one in set(threading.enumerate()) - before if one.is_alive() and not one.daemon]
    assert not left, f"threads left running: {', '.join(left)}"
