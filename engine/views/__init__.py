"""Views: questions about a model that real runs answer, as figures. Adding one means adding its file and naming
it here.

Each view is a module with ``VIEW``, a :class:`engine.views.view.View`. All of them are torch-free at import.
"""

from __future__ import annotations

from engine.errors import SettingError
from engine.views import (
    ablation,
    attention_similarity,
    branch_redundancy,
    depth,
    guidance_weight,
    layer_importance,
    module_latencies,
    speculation,
    tables,
    temporal_redundancy,
)
from engine.views.view import View

VIEWS: tuple[View, ...] = (
    temporal_redundancy.VIEW,
    branch_redundancy.VIEW,
    attention_similarity.VIEW,
    module_latencies.VIEW,
    ablation.VIEW,
    tables.VIEW,
    guidance_weight.VIEW,
    speculation.VIEW,
    layer_importance.VIEW,
    depth.VIEW,
)


def view(name: str) -> View:
    """The view called ``name``. Raises :class:`SettingError` that lists the known ones."""
    for one in VIEWS:
        if one.name == name:
            return one
    raise SettingError(f"There is no view named {name!r}; known views: {', '.join(one.name for one in VIEWS)}.")
