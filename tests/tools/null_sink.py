"""A sound server of one's own that plays to nobody: for machines without a loudspeaker, as root, without a display.

It needs the programmes ``pulseaudio`` and ``pactl``. Sounds take their time, so what plays, switches and follows
does so as it does for people.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from paretone.errors import DeviceError

RATE = 48000
CHANNELS = 2
SINK = "paretone"
PROGRAMMES = ("pulseaudio", "pactl")
_PATIENCE = 60.0
_SCRIPT = f"""
load-module module-null-sink sink_name={SINK} rate={RATE} channels={CHANNELS} format=float32le
load-module module-native-protocol-unix
set-default-sink {SINK}
set-default-source {SINK}.monitor
"""


def missing(*further: str) -> list[str]:
    """Those of the needed programmes, and of ``further`` ones, that are not installed."""
    return [name for name in (*PROGRAMMES, *further) if shutil.which(name) is None]


class NullSink:
    """A PulseAudio server of our own in ``folder``, whose path may have some 90 characters at most: a socket is in it.
    ``environment`` leads clients to it, those in which ``DBUS_SESSION_BUS_ADDRESS`` is not set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server: subprocess.Popen | None = None
        self.environment = {
            "XDG_RUNTIME_DIR": str(folder),
            "PULSE_RUNTIME_PATH": str(folder / "pulse"),
            "PULSE_STATE_PATH": str(folder / "state"),
            "PULSE_COOKIE": str(folder / "cookie"),
            "PULSE_SERVER": f"unix:{folder}/pulse/native",
        }

    def start(self) -> None:
        """Start the server and wait until it answers. Raises :class:`DeviceError` when it does not within a minute."""
        self.folder.chmod(0o700)  # The server wants it to be private.
        for name in ("pulse", "state"):
            (self.folder / name).mkdir(mode=0o700, exist_ok=True)
        script = self.folder / "null_sink.pa"
        script.write_text(_SCRIPT)
        command = ["pulseaudio", "-n", "-F", str(script), "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"]
        with open(self.folder / "server.log", "ab") as log:
            self._server = subprocess.Popen(command, env=self.clients, stdout=log, stderr=log)
        self.wait(lambda: self._ask("pactl", "list", "short", "sinks"), "The sound server did not start")

    def kill(self) -> None:
        """End the server at once, as if the device were unplugged."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None
        (self.folder / "pulse" / "native").unlink(missing_ok=True)

    @property
    def clients(self) -> dict[str, str]:
        """The environment of a programme that is to use the server."""
        environment = {**os.environ, **self.environment}
        environment.pop("DBUS_SESSION_BUS_ADDRESS", None)
        return environment

    def wait(self, ready: Callable[[], bool], complaint: str) -> None:
        """Wait until ``ready``. Raises :class:`DeviceError` with ``complaint`` and the server's log after a minute."""
        end = time.monotonic() + _PATIENCE
        while not ready():
            if time.monotonic() > end:
                log = (self.folder / "server.log").read_text(errors="replace")
                raise DeviceError(f"{complaint} within {_PATIENCE:g} s:\n{log}")
            time.sleep(0.05)

    def _ask(self, *command: str) -> bool:
        answer = subprocess.run(command, env=self.clients, capture_output=True, text=True, check=False)
        return SINK in answer.stdout


@contextmanager
def sound_to_nobody() -> Iterator[None]:
    """A sound server that plays to nobody, where one can be had: player and listening lab look as people meet them."""
    if missing():
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        sink = NullSink(Path(folder))
        sink.start()
        os.environ.update(sink.environment)
        os.environ.pop("DBUS_SESSION_BUS_ADDRESS", None)
        try:
            yield
        finally:
            sink.kill()
