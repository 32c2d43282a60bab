"""A private X server without a screen, on a free display: windows in it are real, and nobody sees them."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.workload import is_thorough

SIZE = 1600, 1000
_POINTER_ROOT = 1
"""Where the keyboard goes when the window that has it is gone: to the one under the pointer."""
NEEDED = ("Xvfb", "pulseaudio")
"""Programs of a screen with sound."""
done_on_a_screen = pytest.mark.skipif(
    os.environ.get("QT_QPA_PLATFORM") == "offscreen" and not is_thorough() and all(map(shutil.which, NEEDED)),
    reason="another test does it as a window of an X server; without one as well where tests are thorough",
)
"""Of a test that another one runs in a process of its own, with a screen and sound."""


def give_keyboard(display: str) -> None:
    """Give the keyboard to the largest window on ``display``, as a window manager would; Xvfb has none."""
    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XDefaultRootWindow.restype = ctypes.c_ulong
    server = ctypes.c_void_p(x11.XOpenDisplay(display.encode()))
    windows, count, unused = ctypes.POINTER(ctypes.c_ulong)(), ctypes.c_uint(), ctypes.c_ulong()
    root = ctypes.c_ulong(x11.XDefaultRootWindow(server))
    *ignored, found, number = *map(ctypes.byref, (unused, unused)), ctypes.byref(windows), ctypes.byref(count)
    x11.XQueryTree(server, root, *ignored, found, number)

    def area(window: int) -> int:
        place = [ctypes.c_int(), ctypes.c_int(), *(ctypes.c_uint() for _ in range(4))]
        x11.XGetGeometry(server, ctypes.c_ulong(window), ctypes.byref(unused), *map(ctypes.byref, place))
        return place[2].value * place[3].value

    x11.XSetInputFocus(server, ctypes.c_ulong(max(windows[: count.value], key=area)), _POINTER_ROOT, 0)
    x11.XCloseDisplay(server)


def require_a_window(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Start the application by ``command``: it must paint its window and load a model without a traceback."""
    with (folder / "said").open("w+") as said:
        window = subprocess.Popen(
            [*command, "--measure-start"],
            cwd=folder,
            env={**environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        seen: list[str] = []
        try:
            for line in window.stdout or ():
                seen.append(line)
                if "ModelLoaded" in line:
                    break
        finally:
            window.kill()
            window.communicate()
        said.seek(0)
        problems = said.read()
    assert any("window painted" in line for line in seen) and "ModelLoaded" in seen[-1], problems
    assert "Traceback" not in problems


@pytest.fixture
def display() -> Iterator[str]:
    """The name of a running Xvfb's display, such as ``:7``."""
    if shutil.which("Xvfb") is None:
        pytest.skip("needs Xvfb (package xvfb)")
    reading, writing = os.pipe()
    # The server chooses a display that is free and tells its number once it answers.
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{SIZE[0]}x{SIZE[1]}x24", "-nolisten", "tcp"]
    # Else it begins anew when its last client leaves, and refuses the next one for a moment.
    command.append("-noreset")
    server = subprocess.Popen(command, pass_fds=(writing,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            number = answer.readline().strip()
        assert number, "Xvfb did not start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait()
