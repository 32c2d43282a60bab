"""Exports of speculative decoding: see :mod:`engine.export.targets`."""

from __future__ import annotations

KIND = "draft"
SETTINGS_FILE = "speculative.json"
