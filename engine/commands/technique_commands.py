"""The commands that techniques bring."""

from __future__ import annotations

from types import ModuleType

from engine.techniques.registry import brought, registry


def technique_commands() -> tuple[ModuleType, ...]:
    """Their modules. One that cannot be imported, or has the name of another command, is left out."""
    from engine.commands import OURS
    from engine.commands.train import BUNDLED

    taken = {"bench", *(one.NAME for one in OURS), *(f"train {one.name}" for one in BUNDLED)}
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
