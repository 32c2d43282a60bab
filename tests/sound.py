"""A private sound server with a null sink: what is played can be recorded sample by sample. Works as root, headless.

from tests.sound import null_sink  # noqa: F401  (a fixture)

def test_something(null_sink):
    with null_sink.recording() as recording:
        ...play through PortAudio...
    samples = recording.samples
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

RATE = 48000
CHANNELS = 2
_SINK = "paretone"
_PATIENCE = 60.0
_SCRIPT = f"""
load-module module-null-sink sink_name={_SINK} rate={RATE} channels={CHANNELS} format=float32le
load-module module-native-protocol-unix
set-default-sink {_SINK}
set-default-source {_SINK}.monitor
"""


class SinkRecording:
    """Sound recorded by the sink's monitor."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def samples(self) -> np.ndarray:
        """The left channel so far, float32; the right one must be the same."""
        raw = np.fromfile(self._path, dtype="<f4")
        both = raw[: len(raw) // CHANNELS * CHANNELS].reshape(-1, CHANNELS)
        assert np.array_equal(both[:, 0], both[:, 1])
        return both[:, 0]


class NullSink:
    """A PulseAudio server of our own in ``folder``. ``environment`` leads clients to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: subprocess.Popen | None = None
        self._count = 0
        self.environment = {
            "XDG_RUNTIME_DIR": str(folder),
            "PULSE_RUNTIME_PATH": str(folder / "pulse"),
            "PULSE_STATE_PATH": str(folder / "state"),
            "PULSE_COOKIE": str(folder / "cookie"),
            "PULSE_SERVER": f"unix:{folder}/pulse/native",
        }

    def start(self) -> None:
        """Start the server and wait until it answers."""
        for name in ("pulse", "state"):
            (self._folder / name).mkdir(mode=0o700, exist_ok=True)
        script = self._folder / "null_sink.pa"
        script.write_text(_SCRIPT)
        command = ["pulseaudio", "-n", "-F", str(script), "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"]
        with open(self._folder / "server.log", "ab") as log:
            self._server = subprocess.Popen(command, env=self._clients(), stdout=log, stderr=log)
        self._wait(lambda: self._ask("pactl", "list", "short", "sinks"), "the sound server did not start")

    def kill(self) -> None:
        """End the server at once, as if the device were unplugged."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None
        (self._folder / "pulse" / "native").unlink(missing_ok=True)

    @contextmanager
    def recording(self) -> Iterator[SinkRecording]:
        """Record the sink; the body begins once recorded samples are arriving."""
        self._count += 1
        path = self._folder / f"monitor{self._count}.raw"
        command = ["parec", "-d", f"{_SINK}.monitor", "--format=float32le", f"--rate={RATE}", f"--channels={CHANNELS}"]
        with open(path, "wb") as sound, open(self._folder / "recorder.log", "ab") as log:
            recorder = subprocess.Popen([*command, "--raw"], env=self._clients(), stdout=sound, stderr=log)
        try:
            self._wait(lambda: path.stat().st_size > 0, "the recorder did not start")
            yield SinkRecording(path)
        finally:
            recorder.terminate()
            recorder.wait()

    def _clients(self) -> dict[str, str]:
        environment = {**os.environ, **self.environment}
        environment.pop("DBUS_SESSION_BUS_ADDRESS", None)
        return environment

    def _ask(self, *command: str) -> bool:
        answer = subprocess.run(command, env=self._clients(), capture_output=True, text=True, check=False)
        return _SINK in answer.stdout

    def _wait(self, ready, complaint: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not ready():
            if time.monotonic() > end:
                log = (self._folder / "server.log").read_text(errors="replace")
                raise RuntimeError(f"{complaint} within {_PATIENCE:g} s:\n{log}")
            time.sleep(0.05)


@pytest.fixture
def null_sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NullSink]:
    """A running :class:`NullSink` that this process's PortAudio plays to by default."""
    with running(tmp_path_factory) as sink:
        yield sink


@pytest.fixture(scope="module")
def lasting_sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NullSink]:
    """The same for all tests of a module that follow."""
    with running(tmp_path_factory) as sink:
        yield sink


@contextmanager
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NullSink]:
    """A running :class:`NullSink`, and the environment that leads to it; skips where there is no sound server."""
    missing = [name for name in ("pulseaudio", "pactl", "parec") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} (packages pulseaudio and pulseaudio-utils)")
    # A socket's path may have at most 107 characters, and the server wants the folder to be private.
    folder = tmp_path_factory.mktemp("sink")
    folder.chmod(0o700)
    sink = NullSink(folder)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sink.environment.items():
            patch.setenv(name, value)
        patch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
        try:
            sink.start()
            yield sink
        finally:
            sink.kill()
