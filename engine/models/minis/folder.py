"""Common part of the bundled models' folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from engine.errors import CheckpointError

WEIGHTS, CONFIG, LAYOUT_FILE = "model.safetensors", "config.json", "layout.json"
Content = TypeVar("Content")
NATURAL_PHONES = "natural phones"
"""Name of the text front end."""


@dataclass(frozen=True)
class MiniFolder:
    """A folder of a bundled model. Every method that reads raises :class:`engine.errors.CheckpointError`, and calls
    ``check`` now and then, which may raise to cancel."""

    root: Path
    check: Callable[[], None] = lambda: None

    @property
    def weights_path(self) -> Path:
        """The weight file that identifies the model."""
        return self.root / WEIGHTS


def read_layout(path: Path, read: Callable[[dict], Content], what: str) -> Content:
    """Read a ``layout.json`` with ``read``; ``what`` describes its contents in errors. Raises
    :class:`CheckpointError`."""
    try:
        return read(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(
            f"{path} does not say {what} ({type(error).__name__}: {error}); restore the model folder."
        ) from error
