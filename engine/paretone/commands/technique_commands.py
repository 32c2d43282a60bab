"""The commands that techniques bring."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from paretone.techniques.registry import brought, registry


def technique_commands(names: Iterable[str]) -> tuple[ModuleType, ...]:
    """Their modules. One that cannot be imported, or has one of the ``names`` of other commands, is left out."""
    taken = set(names)
    found = []
    for technique, module in brought("commands"):
        if module.NAME in taken:
            registry().report(
                f"{technique.title}: its command {module.NAME!r} was left out: there is one of that name; rename it."
            )
            continue
        taken.add(module.NAME)
        found.append(module)
    return tuple(found)
