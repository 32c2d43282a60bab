"""A phone with its times. Torch-free."""

from __future__ import annotations

TimedPhone = tuple[str, float, float]
"""A phone with its start and end in seconds."""
