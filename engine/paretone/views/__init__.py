"""Views: figures that answer questions about a model by real runs.

Each is a :class:`paretone.views.view.View` that a technique names, or the ``VIEW`` of a module that it names
(:attr:`paretone.techniques.base.Technique.views`), or one of :data:`OWN`. All are torch-free at import.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import UTC, datetime

from paretone.by_name import by_name
from paretone.errors import PlainError, PlugInError, SettingError
from paretone.measure.machine import describe
from paretone.setting.knobs import checked
from paretone.setting.plan import kind_of, named
from paretone.techniques.registry import brought, report_taken
from paretone.views.figure import Figure, Provenance
from paretone.views.view import Findings, Task, View

OWN = ("paretone.views.codebooks",)
"""Views of no technique, after the others."""


def named_view(name: str) -> View:
    """View named by a technique: an object, or a module's ``VIEW``."""
    found = named(name)
    return found if isinstance(found, View) else found.VIEW


def views() -> tuple[View, ...]:
    """All views, in the order of their techniques, and :data:`OWN`."""
    found: dict[str, View] = {}
    for technique, there in brought("views"):
        one = there if isinstance(there, View) else there.VIEW
        if one.name in found:
            report_taken(technique, "view", one.name)
            continue
        found[one.name] = one
    for one in map(named_view, OWN):
        found.setdefault(one.name, one)
    return tuple(found.values())


def view(name: str) -> View:
    """View by ``name``. Raises :class:`SettingError` for unknown names."""
    return by_name(name, {one.name: one for one in views()}, "view", "views")


def compute_view(name: str, task: Task) -> Figure:
    """Figure of the view ``name``; knobs missing in ``task.knobs`` have their defaults. Raises
    :class:`paretone.errors.SettingError` for an unsuitable model, and :class:`paretone.errors.Cancelled`."""
    started = time.perf_counter()
    chosen, info = view(name), task.model.info
    subject = chosen.subject(info)
    if subject is None:
        raise SettingError(
            f"{chosen.title} can be computed for models of the family {' or '.join(chosen.families)}, and {info.title} "
            f"belongs to {info.family}; load another model."
        )
    task = replace(task, knobs=checked(chosen.knobs(subject.layers), task.knobs, chosen.title))
    found = chosen.compute(task)
    if not isinstance(found, Findings):
        raise PlugInError(
            f"compute of the view {chosen.name!r} gave {kind_of(found)}, but must give Findings; mend it."
        )
    task.observer.check()
    values = (line[3] for panel in found.panels for line in panel.lines())
    if not any(isinstance(one, str) or math.isfinite(one) for one in values):
        raise PlainError(
            f"{chosen.title} has no finite value: the model's output is not finite; use more steps or "
            "less guidance, or download the checkpoint again."
        )
    spoken, made = (task.utterance, *found.judged), datetime.now(UTC).isoformat(timespec="seconds")
    machine, seconds = describe().line, time.perf_counter() - started
    provenance = Provenance(
        info.title, info.fingerprint, task.setting, spoken, task.knobs, info.device, machine, made, seconds
    )
    return Figure(
        chosen.name, chosen.title, chosen.question, chosen.source, found.panels, found.caption, provenance, found.across
    )
