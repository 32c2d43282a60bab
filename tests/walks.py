"""Walks through the packages: files of ours on the Python stacks at named checkpoints of a real run.

walk = Walk(submit=(EngineThread, "submit"), mixer=(Mixer, "render"))
...make a window...
with walk:
    ...run...
assert len(walk.files) <= 22, walk
"""

import sys
import threading
from types import FrameType
from typing import Any, Self

import pytest

from paretone.paths import CHECKOUT

PACKAGES = tuple(str(CHECKOUT / root) + "/" for root in ("engine/paretone", "app/paretone_app"))
ENGINE = "engine"
"""The name of the engine's thread."""


class Walk:
    """Each checkpoint is an owner, a class or a module, the name of its function and, optionally, of the only thread
    that counts. They are watched from the beginning, since a window keeps methods; :meth:`close` ends that."""

    def __init__(self, **checkpoints: tuple[Any, ...]) -> None:
        self.stacks: dict[str, set[str]] = {name: set() for name in checkpoints}
        """By checkpoint, our files of the shortest way there: those that called it, and its own."""
        self._on = False
        self._patch = pytest.MonkeyPatch()
        for name, (owner, attribute, *thread) in checkpoints.items():
            self._watch(name, owner, attribute, *thread)

    @property
    def files(self) -> set[str]:
        return set().union(*self.stacks.values())

    @property
    def unreached(self) -> list[str]:
        """Checkpoints that nothing came to."""
        return [name for name, files in self.stacks.items() if not files]

    def __repr__(self) -> str:
        lines, seen = [f"{len(self.files)} files:"], set[str]()
        for name, files in self.stacks.items():
            lines += [f"{name}:", *(f"  {one}" for one in sorted(files - seen))]
            seen |= files
        return "\n".join(lines)

    def __enter__(self) -> Self:
        self._on = True
        return self

    def __exit__(self, *_: object) -> None:
        self._on = False

    def close(self) -> None:
        self._patch.undo()

    def _watch(self, checkpoint: str, owner: Any, attribute: str, thread: str = "") -> None:
        function = getattr(owner, attribute)

        def passing(*given: Any, **named: Any) -> Any:
            if self._on and thread in ("", threading.current_thread().name):
                way, known = _ours(sys._getframe(1)) | _relative(function.__code__.co_filename), self.stacks[checkpoint]
                if not known or len(way) < len(known):
                    self.stacks[checkpoint] = way
            return function(*given, **named)

        self._patch.setattr(owner, attribute, passing)


def _ours(frame: FrameType | None) -> set[str]:
    files: set[str] = set()
    while frame is not None:
        files |= _relative(frame.f_code.co_filename)
        frame = frame.f_back
    return files


def _relative(file: str) -> set[str]:
    return {file.removeprefix(str(CHECKOUT) + "/")} if file.startswith(PACKAGES) else set()
