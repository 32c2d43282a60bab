"""Shared by tests of the lab in the window."""

from __future__ import annotations

from tests.sound import lasting_sink, null_sink  # noqa: F401
