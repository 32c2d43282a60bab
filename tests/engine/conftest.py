"""What tests of the engine share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from engine import cli, models
from engine.commands import arguments
from engine.models import downloads
from engine.models.base import SpeechModel
from tests.engine.models.hub import Hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A server in place of the Hugging Face Hub; transfers in this process look often for a cancel."""
    monkeypatch.setattr(downloads, "BLOCK", 16_384)
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def paretone(
    model: SpeechModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process with ``model``, a fixture of the test's own, which is loaded already; exit
    code and both outputs."""
    monkeypatch.setattr(models, "load_model", lambda name, **more: model)
    monkeypatch.setattr(arguments, "_require_files", lambda chosen: None)

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main([str(one) for one in arguments])
        return code, *capsys.readouterr()

    return run
