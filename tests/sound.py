"""A private sound server with a null sink: what is played can be recorded sample by sample. Works as root, headless.

def test_something(null_sink):
    with null_sink.recording() as recording:
        ...play through PortAudio...
    samples = recording.samples
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.tools import null_sink as silent
from tests.tools.null_sink import CHANNELS, RATE, SINK


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


class NullSink(silent.NullSink):
    """One whose sound can be recorded."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._count = 0

    @contextmanager
    def recording(self) -> Iterator[SinkRecording]:
        """Record the sink; the body begins once recorded samples are arriving."""
        self._count += 1
        path = self.folder / f"monitor{self._count}.raw"
        command = ["parec", "-d", f"{SINK}.monitor", "--format=float32le", f"--rate={RATE}", f"--channels={CHANNELS}"]
        with open(path, "wb") as sound, open(self.folder / "recorder.log", "ab") as log:
            recorder = subprocess.Popen([*command, "--raw"], env=self.clients, stdout=sound, stderr=log)
        try:
            self.wait(lambda: path.stat().st_size > 0, "The recorder did not start")
            yield SinkRecording(path)
        finally:
            recorder.terminate()
            recorder.wait()


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
    if missing := silent.missing("parec"):
        pytest.skip(f"needs {', '.join(missing)} (packages pulseaudio and pulseaudio-utils)")
    sink = NullSink(tmp_path_factory.mktemp("sink"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sink.environment.items():
            patch.setenv(name, value)
        patch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
        try:
            sink.start()
            yield sink
        finally:
            sink.kill()
