"""Common part of the bundled models' folders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WEIGHTS, CONFIG, LAYOUT_FILE = "model.safetensors", "config.json", "layout.json"
NATURAL_PHONES = "natural phones"
"""Name of the text front end."""


@dataclass(frozen=True)
class MiniFolder:
    """A folder of a bundled model. Every method that reads raises :class:`paretone.errors.CheckpointError`, and calls
    ``check`` now and then, which may raise to cancel."""

    root: Path
    check: Callable[[], None] = lambda: None

    @property
    def weights_path(self) -> Path:
        """The weight file that identifies the model."""
        return self.root / WEIGHTS
