"""The application never imports torch. What the engine at work imports: ``engine/session/test_engine_thread.py``."""

import gc
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paretone.errors import DeviceError
from paretone.own_process import KERNELS
from paretone_app.__main__ import collecting_later, settle
from paretone_app.shell.window import MainWindow

APPLICATION = (
    "paretone_app.__main__ paretone_app.shell.window paretone_app.shell.headless_tour "
    "paretone_app.features.attention.panel paretone_app.features.listen.panel paretone_app.features.meters.panel "
    "paretone_app.features.strategy.panel paretone_app.features.threshold.panel "
    "paretone_app.features.export paretone_app.features.lab.panel paretone_app.listening.webmushra "
    "paretone_app.features.studies.panel paretone_app.features.studies.maker "
    "paretone_app.results.study"
)
WINDOW = "paretone_app.__main__ paretone_app.shell.window"
OFFSCREEN = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}


@pytest.mark.parametrize(
    ("modules", "forbidden"),
    [
        (APPLICATION, "torch sounddevice"),
        # The window is there first; what reads studies comes after it.
        (WINDOW, "torch pyqtgraph paretone.studies.results"),
    ],
)
def test_importing_one_side_leaves_the_other_out(modules: str, forbidden: str) -> None:
    code = f"import importlib, sys\nfor name in {modules.split()!r}: importlib.import_module(name)"
    assert not imported(code) & set(forbidden.split())


def imported(code: str) -> set[str]:
    """The names of the modules that are there after ``code`` in a process of its own."""
    code += "\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=OFFSCREEN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_first_paint_waits_for_nothing_that_it_does_not_show(tmp_path: Path) -> None:
    """Qt ends without a crash what accessibility knows, although there was a widget before and the window stays."""
    code = (
        "import sys\n"
        "from PySide6.QtWidgets import QApplication, QLabel\n"
        "from paretone_app.__main__ import make_window\n"
        "from paretone_app.shell import window\n"
        "application = QApplication([])\n"
        "QLabel().setEnabled(False)\n"
        f"window = make_window(application, {str(tmp_path)!r})\n"
        "window.first = application.quit\n"
        "window.show()\n"
        "application.exec()\n"
        "window.rail.setEnabled(False)\n"
        "window.deleteLater()"
    )
    there = imported(code)
    assert "paretone_app.features.setup.panel" in there
    late = "torch pyqtgraph sounddevice msgspec rapidfuzz paretone.remote.wire paretone.studies.results"
    assert not there & set(late.split())


def test_garbage_is_collected_again_once_the_window_is_built(window: MainWindow) -> None:
    with collecting_later():
        assert not gc.isenabled()
        settle(window)
        window.built.emit()
        assert gc.isenabled() and gc.get_freeze_count() > 0
    assert gc.isenabled() and gc.get_freeze_count() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
def test_without_a_display_a_sentence_is_said(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("QT_QPA", "WAYLAND"))}
    command = [sys.executable, "-m", "paretone_app", "--data", str(tmp_path)]
    ended = subprocess.run(
        command,
        env={**environment, "DISPLAY": ":7777"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == DeviceError.exit_code
    assert ended.stderr.startswith("Paretone cannot open its window: could not connect to display")
    assert "use the command line" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


class Reached(Exception):
    """Ends the start there."""


@pytest.mark.parametrize("started", ["paretone_app.__main__", "tests.tools.endurance.__main__"])
def test_the_window_shares_one_heap_first_of_all(started: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = importlib.import_module(started)
    for name in KERNELS:
        monkeypatch.setenv(name, "64")

    def stop() -> None:
        raise Reached

    monkeypatch.setattr(program, "share_one_heap", stop)
    with pytest.raises(Reached):
        program.main([])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends processes otherwise")
@pytest.mark.parametrize("came", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_the_window_and_keeps_what_it_keeps(came: signal.Signals, tmp_path: Path) -> None:
    settings = tmp_path / "window.ini"
    command = [sys.executable, "-m", "paretone_app", "--data", str(tmp_path / "data"), "--settings", str(settings)]
    with subprocess.Popen(
        [*command, "--measure-start"],
        env=OFFSCREEN,
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("ModelLoaded"):
                process.send_signal(came)
                break
        said += process.stdout.readlines()
        assert process.wait(300) == 128 + came, "".join(said)
    assert "Traceback" not in "".join(said)
    assert "geometry" in settings.read_text()
