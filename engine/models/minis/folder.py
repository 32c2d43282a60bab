"""Common part of the bundled models' folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from engine.errors import CheckpointError
from engine.front_end.durations import DurationTable
from engine.front_end.natural.phones import EDGE
from engine.front_end.phones import PhoneVocabulary

WEIGHTS, CONFIG, DURATIONS, LAYOUT_FILE = "model.safetensors", "config.json", "durations.json", "layout.json"
Content = TypeVar("Content")
PHONES, NATURAL_PHONES = "phones", "natural phones"
"""Names of text front ends."""


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

    def durations(self) -> DurationTable:
        """Durations of phones."""
        return DurationTable.load(self.root / DURATIONS)


def read_layout(path: Path, read: Callable[[dict], Content], what: str) -> Content:
    """Read a ``layout.json`` with ``read``; ``what`` describes its contents in errors. Raises
    :class:`CheckpointError`."""
    try:
        return read(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(
            f"{path} does not say {what} ({type(error).__name__}: {error}); restore the model folder."
        ) from error


def reads(vocabulary: PhoneVocabulary) -> str:
    """Name of the front end that gives these phones."""
    return NATURAL_PHONES if vocabulary.natural else PHONES


def is_natural(root: Path) -> bool:
    """Whether the model of a folder with a ``layout.json`` reads the phones of natural speech; false if there is no
    such file."""
    try:
        return EDGE in json.loads((root / LAYOUT_FILE).read_text(encoding="utf-8"))["phones"].split()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False
