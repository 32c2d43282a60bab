"""A private X server without a screen, on a free display: windows in it are real, and nobody sees them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.workload import is_thorough

SIZE = 1600, 1000
NEEDED = ("Xvfb", "pulseaudio")
"""Programs of a screen with sound."""
done_on_a_screen = pytest.mark.skipif(
    os.environ.get("QT_QPA_PLATFORM") == "offscreen" and not is_thorough() and all(map(shutil.which, NEEDED)),
    reason="another test does it as a window of an X server; without one as well where tests are thorough",
)
"""Of a test that another one runs in a process of its own, with a screen and sound."""


@pytest.fixture
def display() -> Iterator[str]:
    """The name of a running Xvfb's display, such as ``:7``."""
    if shutil.which("Xvfb") is None:
        pytest.skip("needs Xvfb (package xvfb)")
    reading, writing = os.pipe()
    # The server chooses a display that is free and tells its number once it answers.
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{SIZE[0]}x{SIZE[1]}x24", "-nolisten", "tcp"]
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
