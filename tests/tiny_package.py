"""A package of one line that pip installs without the network, into a folder of the test's own."""

import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paretone import extras

MODULE, REQUIREMENT = "paretone_tiny", "paretone-tiny"


@contextmanager
def tiny_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The installer finds the package in ``folder``, and installs it where this process imports from."""
    wheels, target = folder / "wheels", folder / "target"
    for one in (wheels, target):
        one.mkdir(parents=True)
    info = "paretone_tiny-1.0.dist-info"
    texts = {
        "paretone_tiny.py": "ANSWER = 42\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: paretone-tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheels / "paretone_tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in texts.items():
            wheel.writestr(name, text)
        wheel.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (*texts, f"{info}/RECORD")))
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(wheels), "TARGET": str(target)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setattr(extras, "why_no_installing", lambda: "")
    monkeypatch.syspath_prepend(str(target))
    yield
    sys.modules.pop(MODULE, None)
