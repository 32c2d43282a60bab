"""The trade-off view's choices, as text that is kept between starts. Free of Qt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, fields, replace

from paretone_app.features.tradeoff.model.axes import AXES, KNOB_AXES
from paretone_app.features.tradeoff.model.filtering import ORIGINS, Filter, Range
from paretone_app.features.tradeoff.model.scene import PlotOptions

_AXES = ("x", "y")
_KEPT = (*ORIGINS, "words")


def remembered(options: PlotOptions, own_axes: bool, chosen: Filter) -> str:
    """As JSON. Axes that the user did not choose are left out, and so are the points of *Show only these*: which those
    were is of the moment."""
    look_kept = {name: value for name, value in asdict(options).items() if own_axes or name not in _AXES}
    filter_kept = {name: getattr(chosen, name) for name in _KEPT} | {"hidden": sorted(chosen.hidden)}
    filter_kept["ranges"] = [[one.axis, one.low, one.high] for one in chosen.ranges]
    return json.dumps({"look": look_kept, "filter": filter_kept})


def recalled(text: str) -> tuple[PlotOptions, bool, Filter]:
    """Remembered options, whether the axes are the user's choice, and filter. Unreadable values and other versions are
    ignored."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    look_kept, filter_kept = (_part(found, name) for name in ("look", "filter"))
    axes = _axes(look_kept)
    options = PlotOptions() if axes is None else PlotOptions(*axes)
    switches = [one.name for one in fields(PlotOptions) if one.name not in _AXES]
    options = replace(options, **{name: look_kept[name] for name in switches if isinstance(look_kept.get(name), bool)})
    origins = {name: filter_kept[name] for name in _KEPT if isinstance(filter_kept.get(name), str)}
    hidden = filter_kept.get("hidden")
    names = frozenset(one for one in hidden if isinstance(one, str)) if isinstance(hidden, list) else frozenset()
    return options, axes is not None, Filter(**origins, hidden=names, ranges=tuple(_ranges(filter_kept.get("ranges"))))


def _ranges(kept: object) -> Iterator[Range]:
    known = {one.name for one in (*AXES, *KNOB_AXES)}
    for one in kept if isinstance(kept, list) else ():
        match one:
            case [str(name), float() | int() as low, float() | int() as high] if name in known and low <= high:
                yield Range(name, float(low), float(high))


def _axes(kept: dict) -> tuple[str, str] | None:
    """The user's own X axis and Y axis; ``None`` if there are none, or not any more."""
    x, y = (kept.get(name) for name in _AXES)
    if isinstance(x, str) and isinstance(y, str) and {x, y} <= {one.name for one in (*AXES, *KNOB_AXES)}:
        return x, y
    return None


def _part(found: object, name: str) -> dict:
    part = found.get(name) if isinstance(found, dict) else None
    return part if isinstance(part, dict) else {}
