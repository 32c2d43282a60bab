"""How soon the window is there: ``python -m tests.tools.starting`` measures start to painted, and start to sound.

The application starts as for a newcomer, with a data folder of its own, on an X server without a screen and a sound
server that plays to nobody (packages ``xvfb``, ``pulseaudio`` and ``pulseaudio-utils``). Painted is what
``--measure-start`` prints; sound is the first sample other than 0 that the sound server was given. The first start
reads the files from the disk and counts for nothing; the median of the others is printed. Of sound, seconds of
processor time of the application are given as well, which other programs change little.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from tests.tools.null_sink import CHANNELS, RATE, SINK, NullSink, missing

_PATIENCE = 60.0
_PAINTED = re.compile(r"window painted: ([\d.]+) s after process start, ([\d.]+) s of processor time")


def measured(sink: NullSink, folder: Path) -> tuple[float, float, float, float]:
    """Seconds from the start until the window is painted, and until there is sound; each by the clock, then of the
    application's processor time. Raises :class:`TimeoutError`."""
    recorded = folder / "monitor.raw"
    command = ["parec", "-d", f"{SINK}.monitor", "--format=float32le", f"--rate={RATE}", f"--channels={CHANNELS}"]
    environment = {**sink.clients, "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # As for users.
    with open(recorded, "wb") as sound, open(folder / "said", "w+") as said:
        recorder = subprocess.Popen([*command, "--raw", "--latency-msec=10"], env=sink.clients, stdout=sound)
        sink.wait(lambda: recorded.stat().st_size > 0, "The recorder did not start")
        began = time.monotonic()
        program = [sys.executable, "-m", "paretone_app", "--data", str(folder / "data"), "--measure-start"]
        window = subprocess.Popen(program, env=environment, stdout=said, stderr=subprocess.STDOUT)
        try:
            while not np.fromfile(recorded, "<f4").any():
                if time.monotonic() > began + _PATIENCE or window.poll() is not None:
                    raise TimeoutError(f"There was no sound:\n{Path(said.name).read_text()}")
                time.sleep(0.01)
            heard, used = time.monotonic() - began, _processor_seconds(window.pid)
        finally:
            window.kill()
            recorder.terminate()
            window.wait(), recorder.wait()
    painted = _PAINTED.search(Path(said.name).read_text())
    assert painted is not None, "what sounds was painted before"
    return float(painted[1]), float(painted[2]), heard, used


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.starting", description=__doc__.partition("\n")[0])
    parser.add_argument("--starts", type=int, default=5, metavar="N", help="starts that count (default: 5)")
    starts = parser.parse_args().starts
    if lacking := missing("parec", "xvfb-run"):
        sys.exit(f"These programs are missing: {', '.join(lacking)}.")
    if "DISPLAY" not in os.environ:
        os.execvp(
            "xvfb-run",
            ["xvfb-run", "-a", "-s", "-screen 0 1440x900x24", sys.executable, "-m", __spec__.name, *sys.argv[1:]],
        )
    found = []
    with tempfile.TemporaryDirectory() as folder:
        sink = NullSink(Path(folder))
        sink.start()
        try:
            for number in range(starts + 1):
                place = Path(folder) / str(number)
                place.mkdir()
                found.append(measured(sink, place))
        finally:
            sink.kill()
    painted, painting, heard, hearing = (median(values) for values in zip(*found[1:], strict=True))
    print(f"start to a painted window: {painted:.2f} s ({painting:.2f} s of processor time)")
    print(f"start to sound: {heard:.2f} s ({hearing:.2f} s of processor time); medians of {starts} starts")


if __name__ == "__main__":
    main()
