"""Views: questions about a model that real runs answer, as figures.

Each view is a module of a technique with ``VIEW``, a :class:`paretone.views.view.View`, which the technique names
(:attr:`paretone.techniques.base.Technique.views`). All of them are torch-free at import.
"""

from __future__ import annotations

from paretone.by_name import by_name
from paretone.techniques.registry import brought, registry
from paretone.views.view import View


def views() -> tuple[View, ...]:
    """All views, in the order of their techniques."""
    found: dict[str, View] = {}
    for technique, module in brought("views"):
        if module.VIEW.name in found:
            registry().report(
                f"{technique.title}: its view {module.VIEW.name!r} was left out: there is one of that name; rename it."
            )
            continue
        found[module.VIEW.name] = module.VIEW
    return tuple(found.values())


def view(name: str) -> View:
    """The view called ``name``. Raises :class:`SettingError` for others."""
    return by_name(name, {one.name: one for one in views()}, "view", "views")
