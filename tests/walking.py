"""Which of our files a walk through the application goes: those on the stack at named checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "engine" / "paretone", ROOT / "app" / "paretone_app")


class Walk:
    """The files by the names of checkpoints, each when it was come to first."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.files: dict[str, tuple[str, ...]] = {}

    def checkpoint(self, name: str, owner: object, function: str) -> None:
        """Note the stack under ``name`` when ``function`` of ``owner`` is called."""
        plain: Callable[..., object] = getattr(owner, function)

        def noting(*arguments: object, **named: object) -> object:
            self.files.setdefault(name, _ours(plain, sys._getframe(1)))
            return plain(*arguments, **named)

        self._patch.setattr(owner, function, noting)

    @property
    def union(self) -> list[str]:
        """All files, each once, in the order in which they are come to."""
        return list(dict.fromkeys(file for files in self.files.values() for file in files))


def _ours(function: Callable[..., object], frame: FrameType | None) -> tuple[str, ...]:
    """Our files from the outermost caller to ``function``."""
    paths = [Path(function.__code__.co_filename)]
    while frame is not None:
        paths.append(Path(frame.f_code.co_filename))
        frame = frame.f_back
    found = (path.relative_to(ROOT).as_posix() for path in reversed(paths) if any(map(path.is_relative_to, SOURCES)))
    return tuple(dict.fromkeys(found))
