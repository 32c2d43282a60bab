"""Exports of SPADE: see :mod:`engine.export.targets`."""

from __future__ import annotations

KIND = "student"
