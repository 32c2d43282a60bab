"""Availability of sound, tested in a separate process, because the test can kill its process.

A broken ALSA configuration makes PortAudio abort (SIGABRT) during initialisation, which ``import sounddevice``
triggers. A short-lived child therefore tests first; only after success is ``sounddevice`` imported here. This file is
also the child's program and therefore imports nothing of the application.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass, field

_MARK = "paretone-sound:"
_ADVICE = "Playback is off; everything else works."


@dataclass(frozen=True)
class OutputDevice:
    """An output device, as PortAudio lists it."""

    index: int
    name: str
    host: str
    """Host interface: ALSA, Core Audio, WASAPI and so on."""
    channels: int
    rate: int
    """Preferred sample rate of the device in hertz."""


@dataclass(frozen=True)
class Sound:
    """Output devices, or a sentence on why there are none."""

    devices: tuple[OutputDevice, ...] = ()
    default: int = -1
    """``OutputDevice.index`` of the system's choice, or -1."""
    reason: str = field(default="")

    @property
    def usable(self) -> bool:
        return not self.reason

    def device(self, wanted: int | str | None = None) -> OutputDevice | None:
        """The device with this index, or with this text in its name; ``None``: the default one."""
        for one in self.devices:
            if wanted is None and one.index == self.default:
                return one
            if isinstance(wanted, int) and one.index == wanted:
                return one
            if isinstance(wanted, str) and wanted.casefold() in one.name.casefold():
                return one
        return None


_asked: list[subprocess.Popen[str]] = []
"""The child whose answer the next :func:`probe` reads."""


def ask() -> None:
    """Start the next :func:`probe` early, to do something else meanwhile."""
    with suppress(OSError):  # The probe says so.
        _asked.append(_child())


def _child() -> subprocess.Popen[str]:
    # Imported here, as the child has this file alone.
    from paretone.own_process import command

    pipe = subprocess.PIPE
    return subprocess.Popen(command("paretone.audio.sound_system"), stdout=pipe, stderr=pipe, text=True)


def probe(timeout: float = 20.0) -> Sound:
    """Ask a child process for the output devices. Takes about 0.3 s; never raises, never aborts the caller."""
    try:
        with _asked.pop() if _asked else _child() as child:
            try:
                told, complaints = child.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                child.kill()
                return Sound(reason=f"The sound system did not answer within {timeout:g} s. {_ADVICE}")
    except OSError as error:
        return Sound(reason=f"The sound system could not be queried ({error}). {_ADVICE}")
    for line in told.splitlines():
        if line.startswith(_MARK):
            data = json.loads(line.removeprefix(_MARK))
            return Sound(tuple(OutputDevice(**one) for one in data["devices"]), data["default"], data["reason"])
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    detail = f": {lines[-1][:200]}" if lines else ""
    return Sound(
        reason=f"The sound system crashed during the check (exit code {child.returncode}{detail}). "
        f"Check the sound configuration, on Linux ~/.asoundrc and /etc/asound.conf. {_ADVICE}"
    )


def answer() -> None:
    """In the child: print the output for :func:`probe`."""
    print(_MARK + json.dumps(asdict(_examine())), flush=True)


def _examine() -> Sound:
    try:
        import sounddevice
    except ModuleNotFoundError:
        return Sound(reason=f"The Python package sounddevice is not installed. {_ADVICE}")
    except OSError:
        return Sound(
            reason="The PortAudio library is missing; on Debian or Ubuntu install it with "
            f"'sudo apt install libportaudio2'. {_ADVICE}"
        )
    hosts = sounddevice.query_hostapis()
    devices = tuple(
        OutputDevice(
            index=int(one["index"]),
            name=str(one["name"]),
            host=str(hosts[one["hostapi"]]["name"]),
            channels=int(one["max_output_channels"]),
            rate=round(one["default_samplerate"]),
        )
        for one in sounddevice.query_devices()
        if one["max_output_channels"] > 0
    )
    default = int(sounddevice.default.device[1])
    if not devices:
        return Sound(reason=f"No audio output device was found. {_ADVICE}")
    if all(one.index != default for one in devices):
        default = devices[0].index
    return Sound(devices, default)


if __name__ == "__main__":
    answer()
