"""Shared by tests of the lab in the window."""

from __future__ import annotations

import pytest

from tests.sound import lasting_sink, null_sink  # noqa: F401


@pytest.fixture(scope="module")
def looked_at() -> tuple[str, ...]:
    """Panels that must look as when they were new after each test."""
    return ("lab", "takes")
