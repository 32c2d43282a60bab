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

from tests.collecting import import_in_turns
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

LONGEST_FILES = (
    "documents/test_commands.py",
    "engine/commands/test_train.py",
    "engine/commands/test_signals.py",
    "engine/studies/test_cluster.py",
    "engine/training/test_command_line.py",
    "app/features/studies/test_presenter.py",
    "app/shell/test_window.py",
    "app/shell/test_closing.py",
    "app/features/lab/test_panel.py",
    "end_to_end/test_listening_lab.py",
    "app/features/lab/test_presenter_with_sound.py",
    "app/features/tradeoff/test_presenter.py",
    "engine/techniques/spade/studies/test_adopting.py",
    "engine/bench/test_masked.py",
    "engine/models/kernels/test_compiled.py",
    "engine/test_cli_flow.py",
    "end_to_end/test_audio_sink.py",
    "engine/export/test_f5_tts.py",
    "engine/export/programs/test_omnivoice.py",
    "engine/export/programs/test_f5_triton.py",
    "engine/export/programs/test_served_caches.py",
    "end_to_end/test_headless_tour.py",
    "packaging/test_wheel.py",
    "end_to_end/test_by_ear.py",
    "end_to_end/test_main_job.py",
    "engine/sampling/test_speculative.py",
    "app/features/test_language.py",
    "engine/measure/roofline/test_layouts.py",
    "engine/studies/test_running.py",
    "engine/models/f5/test_adapter.py",
    "engine/models/cosyvoice2/test_official_speech.py",
    "engine/training/recipes/test_natural_tokens.py",
    "engine/training/recipes/test_natural_vocoder.py",
    "plugins/test_tutorial.py",
    "engine/training/test_official_training.py",
    "app/features/training/test_presenter.py",
    "engine/test_cli.py",
    "engine/test_cli_download.py",
    "engine/training/test_session.py",
    "engine/training/test_companions.py",
    "engine/techniques/guidance_free/test_fine_tuning.py",
    "engine/techniques/guidance_free/test_recipe.py",
    "engine/techniques/guidance_free/benches/test_guidance_free.py",
    "engine/techniques/ditreducio/test_calibration.py",
    "engine/measure/test_verdicts.py",
    "engine/bench/test_voices.py",
    "peers/test_f5.py",
    "plugins/test_plugins.py",
    "packaging/test_docs.py",
    "packaging/test_dev.py",
    "engine/models/families/test_language.py",
    "engine/techniques/blockwise/test_blockwise.py",
    "app/features/test_masked.py",
    "engine/models/kernels/test_split_products.py",
    "engine/bench/test_language.py",
    "engine/views/test_megatts3.py",
    "engine/training/recipes/test_natural_megatts3.py",
)
"""Files of five seconds and more, the longest first; those that mostly wait before those that compute."""
PATIENCE_SECONDS = 120.0
"""Seconds that a test waits for a thread to end, or for an event."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Long repetitions and workloads in full, which takes minutes more."""
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest begin first, so that no process ends long after the others."""
    places = {name: place for place, name in enumerate(LONGEST_FILES)}
    root = Path(__file__).parent
    items.sort(key=lambda item: places.get(item.path.relative_to(root).as_posix(), len(places)))


def pytest_unconfigure() -> None:
    """Take the tests' data away."""
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
    """Python's collector looks through what a module's tests make, not through a million objects of libraries each time
    that an engine or a window ends."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test finds the user's folder empty. (Pytest would look through the folders of all tests before to name one
    more.)"""
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
