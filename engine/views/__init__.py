"""Views: questions about a model that real runs answer, as figures.

Each view is a module of a technique with ``VIEW``, a :class:`engine.views.view.View`, which the technique names
(:attr:`engine.techniques.base.Technique.views`). All of them are torch-free at import.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib import import_module

from engine.by_name import by_name
from engine.techniques import techniques
from engine.views.view import View

_log = logging.getLogger(__name__)


@cache
def views() -> tuple[View, ...]:
    """All views, in the order of their techniques. One that cannot be imported is named in the log, and the others are
    loaded."""
    found = []
    for technique in techniques():
        for module in technique.views:
            try:
                found.append(import_module(module).VIEW)
            except Exception:  # Whatever a plug-in raises must not take the others down.
                _log.exception("%s: the view in %s was left out.", technique.title, module)
    return tuple(found)


def view(name: str) -> View:
    """The view called ``name``. Raises :class:`SettingError` that lists the known ones."""
    return by_name(name, {one.name: one for one in views()}, "view", "views")
