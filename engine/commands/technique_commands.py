"""The commands that techniques bring."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType

from engine.techniques import techniques


@cache
def technique_commands() -> tuple[ModuleType, ...]:
    """Their modules. One that cannot be imported is named on standard error and left out."""
    found = []
    for technique in techniques():
        for name in technique.commands:
            try:
                found.append(import_module(name))
            except Exception as error:  # Whatever a plug-in raises must not take the others down.
                reason = f"{type(error).__name__}: {error}"
                print(f"{technique.title}: the command in {name} was left out ({reason}).", file=sys.stderr)
    return tuple(found)
