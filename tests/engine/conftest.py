"""What tests of the engine share."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from engine.models import downloads
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
