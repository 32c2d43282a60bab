"""Computing a view with a loaded model."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import UTC, datetime

from paretone.errors import PlainError, PlugInError, SettingError
from paretone.measure.machine import describe
from paretone.setting.knobs import checked
from paretone.setting.plan import kind_of
from paretone.views import view as named
from paretone.views.figure import Figure, Panel, Provenance
from paretone.views.view import Findings, Task


def compute_view(name: str, task: Task) -> Figure:
    """The figure of the view called ``name``; ``task.knobs`` may lack those that are to be at their defaults.

    Raises :class:`paretone.errors.SettingError` if the model cannot answer it, and :class:`paretone.errors.Cancelled`.
    """
    started = time.perf_counter()
    view, info = named(name), task.model.info
    if info.family not in view.families:
        raise SettingError(
            f"{view.title} can be computed for models of the family {' or '.join(view.families)}, and {info.title} "
            f"belongs to {info.family}; load another model."
        )
    task = replace(task, knobs=checked(view.knobs(info.layers), task.knobs, view.title))
    found = view.compute(task)
    if not isinstance(found, Findings):
        raise PlugInError(f"compute of the view {view.name!r} gave {kind_of(found)}, but must give Findings; mend it.")
    task.observer.check()
    if not any(_has_values(panel) for panel in found.panels):
        raise PlainError(
            f"{view.title} has no finite value: the model's output is not finite; use more steps or "
            "less guidance, or download the checkpoint again."
        )
    return Figure(
        view.name,
        view.title,
        view.question,
        view.source,
        found.panels,
        found.caption,
        Provenance(
            info.title,
            info.fingerprint,
            task.setting,
            (task.utterance, *found.judged),
            task.knobs,
            info.device,
            describe().line,
            datetime.now(UTC).isoformat(timespec="seconds"),
            time.perf_counter() - started,
        ),
        found.across,
    )


def _has_values(panel: Panel) -> bool:
    values = (line[3] for line in panel.lines())
    return any(isinstance(value, str) or math.isfinite(value) for value in values)
