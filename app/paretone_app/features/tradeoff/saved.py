"""Axes and filter of the trade-off view as text, and selections of points as files to share. No Qt."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from paretone import files
from paretone.errors import SettingError
from paretone.fields import exact
from paretone.reading import read_json
from paretone.setting.setting import Setting
from paretone_app.features.tradeoff.axes import AXES, KNOB_AXES
from paretone_app.features.tradeoff.scene import ORIGINS, Filter, PlotOptions, Range
from paretone_app.numbers import counted
from paretone_app.results.points import STUDY, Point

Kind = TypeVar("Kind", str, list, dict)
_AXES = ("x", "y")
_KEPT = (*ORIGINS, "words")


def remembered(options: PlotOptions, own_axes: bool, chosen: Filter) -> str:
    """As JSON. Omits axes not chosen by the user, and the points of *Show only these*, which are transient."""
    look_kept = {name: value for name, value in asdict(options).items() if own_axes or name not in _AXES}
    filter_kept = {name: getattr(chosen, name) for name in _KEPT} | {"hidden": sorted(chosen.hidden)}
    filter_kept["ranges"] = [[one.axis, one.low, one.high] for one in chosen.ranges]
    return json.dumps({"look": look_kept, "filter": filter_kept})


def recalled(text: str) -> tuple[PlotOptions, bool, Filter]:
    """Options, whether the user chose the axes, and the filter. What is unreadable or of another version is ignored."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    look_kept, filter_kept = (_of_type(found, name, dict) for name in ("look", "filter"))
    switches = (one.name for one in fields(PlotOptions) if one.name not in _AXES)
    look: dict[str, Any] = {name: look_kept[name] for name in switches if isinstance(look_kept.get(name), bool)}
    known = {one.name for one in (*AXES, *KNOB_AXES)}
    axes = {name: _of_type(look_kept, name, str) for name in _AXES}
    own_axes = known.issuperset(axes.values())
    origins: dict[str, Any] = {name: _of_type(filter_kept, name, str) for name in _KEPT}
    hidden = frozenset(one for one in _of_type(filter_kept, "hidden", list) if isinstance(one, str))
    ranges = []
    for one in _of_type(filter_kept, "ranges", list):
        match one:
            case [str(name), float() | int() as low, float() | int() as high] if name in known and low <= high:
                ranges.append(Range(name, float(low), float(high)))
    look |= axes if own_axes else {}
    return PlotOptions(**look), own_axes, Filter(**origins, hidden=hidden, ranges=tuple(ranges))


def _of_type(found: object, name: str, kind: type[Kind]) -> Kind:
    """The value of this type in ``found``, or an empty one."""
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, kind) else kind()


_VERSION = 1
_FIELDS = {"paretone_selection": int, "view": dict, "points": list, "current": int}
_POINT_FIELDS = {"study": str, "title": str, "setting": dict}
_LARGEST = 32 * 2**20  # Largest file size, in bytes.


@dataclass(frozen=True)
class Chosen:
    study: str
    title: str
    setting: Setting


@dataclass(frozen=True)
class Selection:
    view: str
    """Axes and filter, from :func:`remembered`."""
    points: tuple[Chosen, ...]
    current: Chosen | None = None


def selection_of(view: str, selected: Sequence[Point], current: Point | None) -> Selection:
    """The study points among the ``selected``. Raises :class:`SettingError` if there are none."""
    studied = [one for one in selected if one.setting and one.kind == STUDY]
    chosen = {one.key: Chosen(one.source, one.title, one.setting) for one in studied if one.setting}
    if not chosen:
        raise SettingError("Select points of a study first; takes are in your library alone.")
    return Selection(view, tuple(chosen.values()), None if current is None else chosen.get(current.key))


def write(selection: Selection, path: Path) -> None:
    """Raises :class:`PlainError` if ``path`` cannot be written."""
    points = [{"study": one.study, "title": one.title, "setting": one.setting.to_json()} for one in selection.points]
    data = {
        "paretone_selection": _VERSION,
        "view": json.loads(selection.view),
        "points": points,
        "current": -1 if selection.current is None else selection.points.index(selection.current),
    }
    files.write(path, json.dumps(data, ensure_ascii=False, indent=1).encode())


def read(path: Path) -> Selection:
    """Raises :class:`SettingError` with the fault of the file at ``path``."""
    try:
        if path.stat().st_size > _LARGEST:
            raise SettingError(f"{path} is too large for a selection; choose a file that Trade-off saved.")
        data = read_json(path)
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror or error}.") from None
    except ValueError:
        raise SettingError(f"{path} is not a selection; choose a file that Trade-off saved.") from None
    fields = exact(data, str(path), _FIELDS, SettingError)
    if fields["paretone_selection"] != _VERSION:
        raise SettingError(f"{path} is from another version of Paretone ({fields['paretone_selection']}).")
    rows = (exact(one, f"{path}: points[{at}]", _POINT_FIELDS, SettingError) for at, one in enumerate(fields["points"]))
    points = tuple(Chosen(one["study"], one["title"], Setting.from_json(one["setting"])) for one in rows)
    current = fields["current"]
    return Selection(json.dumps(fields["view"]), points, points[current] if 0 <= current < len(points) else None)


def find(selection: Selection, points: Sequence[Point]) -> tuple[tuple[str, ...], str, str]:
    """Keys of the selected points and of the current one, and a sentence about missing points; ``""`` for none. A study
    of the same title comes before others. Raises :class:`SettingError` if all points are missing."""
    by_study = {(one.source, one.setting): one.key for one in points if one.kind == STUDY}
    anywhere = {one.setting: one.key for one in points if one.kind == STUDY}
    found = {one: by_study.get((one.study, one.setting)) or anywhere.get(one.setting) for one in selection.points}
    keys = {one: key for one, key in found.items() if key is not None}
    missing = [one for one in found if one not in keys]
    studies = " and ".join(f"“{title}”" for title in dict.fromkeys(one.study for one in missing))
    if not keys:
        named = studies or "that it is of"
        raise SettingError(f"None of the selected settings is here; open the study {named} first (Open study…).")
    remark = ""
    if missing:
        count, title = counted(len(missing), "selected setting is", "selected settings are"), missing[0].title
        remark = f"{count} not here, such as “{title}”; open the study {studies}, or a newer copy of it."
    current = "" if selection.current is None else keys.get(selection.current, "")
    return tuple(keys.values()), current, remark
