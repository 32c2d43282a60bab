"""Shared by tests of the engine."""

import random
import sys
import threading
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from paretone import models
from paretone.models.base import SpeechModel
from paretone.models.declaration import Model
from paretone.models.files import releases
from tests.engine.command_line import Console
from tests.engine.models.hub import Hub


# What a test draws is the same every time, whichever tests ran before it in its process; and so is what a fixture draws
# that several share, whichever of them is first.
@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef) -> None:
    seed(f"{fixturedef.baseid} {fixturedef.argname}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    seed(item.nodeid)


def seed(name: str) -> None:
    """Begin all global random sequences anew, for ``name`` differently from others."""
    number = zlib.crc32(name.encode())
    random.seed(number)
    np.random.seed(number)
    # Where a test needs torch, its file has imported it.
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        # For each kind of device that is not there, manual_seed would keep a trace of the stack, thousands in all.
        (torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed)(number)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A server in place of the Hugging Face Hub; transfers in this process look often for a cancel."""
    monkeypatch.setattr(releases, "BLOCK", 16_384)
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def console(capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(capsys)


@pytest.fixture
def paretone(model: SpeechModel, console: Console, monkeypatch: pytest.MonkeyPatch) -> Console:
    """The command line with ``model``, a fixture of the test's own, which is loaded already."""
    monkeypatch.setattr(models, "load_model", lambda name, **more: model)
    monkeypatch.setattr(Model, "available", True)
    monkeypatch.setattr(Model, "folder_at", lambda self, folder="": self.folder)
    return console
