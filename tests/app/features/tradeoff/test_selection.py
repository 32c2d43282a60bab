"""A selection as a file: written, read, found again in another person's studies, and refused in a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.errors import SettingError
from paretone_app.features.tradeoff.saved import find, read, remembered, selection_of, write
from paretone_app.features.tradeoff.scene import Filter, PlotOptions
from paretone_app.results.points import TAKE
from tests.app.features.tradeoff.test_front import BOTH, PLAIN, PRUNED, point

VIEW = remembered(PlotOptions(x="speed_up", log_x=True), True, Filter(words="steps"))
POINTS = point("a", PLAIN, 1, 0.0), point("b", PRUNED, 2, 0.1), point("c", BOTH, 3, 0.2)


def saved(folder: Path) -> Path:
    write(selection_of(VIEW, POINTS[:2], POINTS[1]), folder / "selection.json")
    return folder / "selection.json"


def test_what_was_selected_is_found_in_another_copy_of_the_study(tmp_path: Path) -> None:
    there = read(saved(tmp_path))
    assert json.loads(there.view) == json.loads(VIEW) and there.current == there.points[1]
    theirs = [replace(one, key=f"their {one.key}", folder=Path("elsewhere")) for one in POINTS]
    found = find(there, theirs)
    assert found.keys == ("their a", "their b") and found.current == "their b" and found.remark == ""
    renamed = [replace(one, source="Under another title") for one in theirs]
    assert find(there, renamed).keys == found.keys
    other = replace(theirs[0], key="the same elsewhere", source="Another study")
    assert find(there, [*theirs, other]).keys == found.keys, "the study of that title comes first"


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    there = read(saved(tmp_path))
    found = find(there, POINTS[:1])
    assert found.keys == ("a",) and found.current == ""
    assert found.remark.startswith("1 selected setting is not here, such as “setting b”; open the study “A study”")
    with pytest.raises(SettingError, match="None of the selected settings is here; open the study “A study” first"):
        find(there, POINTS[2:])


def test_takes_are_nobody_elses() -> None:
    take = point("d", BOTH, 4, 0.3, kind=TAKE)
    with pytest.raises(SettingError, match="Select points of a study first"):
        selection_of(VIEW, [take], take)
    assert len(selection_of(VIEW, [take, POINTS[0]], take).points) == 1
    assert selection_of(VIEW, [take, POINTS[0]], take).current is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: "[]", "must be an object"),
        (lambda data: "[" * 100_000, "is not a selection"),
        (lambda data: json.dumps(data | {"paretone_selection": 2}), "another version"),
        (lambda data: json.dumps(data | {"points": [{"study": "A study"}]}), "points\\[0\\] lacks the field"),
        (lambda data: json.dumps({**data, "points": [data["points"][0] | {"setting": {"model": 1}}]}), "setting"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, change, reason: str) -> None:
    path = saved(tmp_path)
    path.write_text(change(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    with pytest.raises(SettingError, match=reason):
        read(path)
    with pytest.raises(SettingError, match="cannot be read"):
        read(tmp_path / "none.json")
