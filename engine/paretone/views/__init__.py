"""Views: questions about a model that real runs answer, as figures.

Each is a :class:`paretone.views.view.View` that a technique names, or the ``VIEW`` of a module that it names
(:attr:`paretone.techniques.base.Technique.views`). All of them are torch-free at import.
"""

from __future__ import annotations

from paretone.by_name import by_name
from paretone.techniques.registry import brought, named, registry
from paretone.views.view import View


def named_view(name: str) -> View:
    """The view that a technique names: an object, or that of a module."""
    found = named(name)
    return found if isinstance(found, View) else found.VIEW


def views() -> tuple[View, ...]:
    """All views, in the order of their techniques."""
    found: dict[str, View] = {}
    for technique, there in brought("views"):
        one = there if isinstance(there, View) else there.VIEW
        if one.name in found:
            registry().report(
                f"{technique.title}: its view {one.name!r} was left out: there is one of that name; rename it."
            )
            continue
        found[one.name] = one
    return tuple(found.values())


def view(name: str) -> View:
    """The view called ``name``. Raises :class:`SettingError` for others."""
    return by_name(name, {one.name: one for one in views()}, "view", "views")
