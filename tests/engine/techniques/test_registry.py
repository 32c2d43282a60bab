"""The registry finds our techniques in the entry points, and all of them."""

from __future__ import annotations

import tomllib
from importlib.metadata import entry_points

import pytest

from paretone.errors import SettingError
from paretone.paths import resource
from paretone.setting.plan import Part, imported
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import applying_to, find, technique, techniques
from paretone.techniques.base import SLOTS, Conflict, Context, fault_of_slot
from paretone.techniques.registry import GROUP, OURS, problems
from paretone.techniques.resolving import known

ROOM = resource().parent / "engine" / "paretone" / "techniques"


def declared() -> dict[str, str]:
    return tomllib.loads((ROOM.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"][
        GROUP
    ]


def test_installed_metadata_names_what_the_project_declares() -> None:
    installed = {one.name: one.value for one in entry_points(group=GROUP) if one.dist and one.dist.name == OURS}
    assert installed == declared(), "install Paretone again: packaging/dev.py does"


def test_every_technique_of_the_folder_is_declared_under_its_name() -> None:
    assert not problems()
    for name, value in declared().items():
        module, _, attribute = value.partition(":")
        assert module == f"paretone.techniques.{name}" and attribute == "TECHNIQUE"
        assert find(name) is imported(value) and technique(name).name == name


def test_lists_have_one_order_and_titles_are_unique() -> None:
    listed = techniques()
    assert [one.place for one in listed] == sorted({one.place for one in listed})
    assert len({one.title for one in listed}) == len(listed)


def test_a_model_is_offered_what_its_family_and_options_allow() -> None:
    flow = applying_to("flow", ())
    assert flow and all("flow" in one.families and not one.options for one in flow)
    with_flow, without = applying_to("language", (), 10), applying_to("language", ())
    assert {one.name for one in with_flow} - {one.name for one in without} == {"average_velocity"}


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"no technique named 'warp'; known techniques: ditreducio"):
        technique("warp")


@pytest.mark.parametrize(
    ("slot", "meant"),
    [
        ("guidance:combinig", "guidance:combining"),
        ("guidence:combining", "guidance"),
        ("weights:langauge", "weights:language"),
        ("skiping", "skipping"),
        ("sampling:", "sampling"),
        ("draft:a b", "draft"),
    ],
)
def test_a_misspelt_slot_is_refused_wherever_it_is_named(slot: str, meant: str) -> None:
    """It would exclude nothing, and nothing would be found in it."""
    assert fault_of_slot(slot).startswith(f"{slot!r} (did you mean {meant!r}?); it must be one of passages, ")
    with pytest.raises(ValueError, match="did you mean"):
        Context(known("f5-mini"), Setting("f5-mini"), UsedTechnique("steps")).title_in(slot)
    with pytest.raises(ValueError, match="did you mean"):
        Conflict("Both decide about it.", slot)


def test_slots_of_all_techniques_and_parts_of_ones_own_are_let_in() -> None:
    own = ("sampling:mine", "guidance:everyone", "guidance:combine")
    assert not any(map(fault_of_slot, (*SLOTS, *own, *(one.slot for one in techniques() if one.slot))))


def test_a_part_is_imported_when_it_is_made() -> None:
    assert Part.of("builtins:dict", steps=7, sway=-1.0).make({"a": 1}) == {"a": 1, "steps": 7, "sway": -1.0}
    assert Part.of("builtins:dict", b=1, a=2) == Part.of("builtins:dict", a=2, b=1)
    for target in ("nowhere.at_all:thing", "builtins:thing"):
        with pytest.raises(SettingError, match="could not be imported"):
            Part.of(target).make()
