"""Walks through the packages: files of ours on the Python stacks at named checkpoints of a real run.

with Walk(submit=(EngineThread, "submit"), mixer=(Mixer, "render")) as walk:
    ...run...
assert len(walk.files) <= 22, walk
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Self

import pytest

from paretone.paths import CHECKOUT

PACKAGES = tuple(str(CHECKOUT / root) + "/" for root in ("engine/paretone", "app/paretone_app"))


class Walk:
    """Each checkpoint is an owner, a class or a module, and the name of a function of it."""

    def __init__(self, **checkpoints: tuple[Any, str]) -> None:
        self.stacks: dict[str, set[str]] = {name: set() for name in checkpoints}
        """Files of ours, from the checkout, by checkpoint: those that called it, on any thread, and its own."""
        self._checkpoints = checkpoints
        self._patch = pytest.MonkeyPatch()

    @property
    def files(self) -> set[str]:
        """Those of all checkpoints."""
        return set().union(*self.stacks.values())

    @property
    def unreached(self) -> list[str]:
        """Checkpoints that nothing came to."""
        return [name for name, files in self.stacks.items() if not files]

    def __str__(self) -> str:
        lines, seen = [f"{len(self.files)} files:"], set[str]()
        for name, files in self.stacks.items():
            lines += [f"{name}:", *(f"  {one}" for one in sorted(files - seen))]
            seen |= files
        return "\n".join(lines)

    def __enter__(self) -> Self:
        for name, (owner, attribute) in self._checkpoints.items():
            self._watch(name, owner, attribute)
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _watch(self, checkpoint: str, owner: Any, attribute: str) -> None:
        function, found = getattr(owner, attribute), self.stacks[checkpoint]

        def passing(*given: Any, **named: Any) -> Any:
            found.update(_ours(sys._getframe(1)))
            found.update(_relative(function.__code__.co_filename))
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
