"""The registry of techniques: entry points, names, words, and marks in the window."""

import ast
import itertools
import re
import sys
import threading
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import paretone
from paretone.errors import SettingError
from paretone.figures.glyphs import DERIVED_SHAPES, HUES, SHAPES, Mark, corners, derived_mark
from paretone.models import catalogue
from paretone.models.base import MelFlow, ModelInfo
from paretone.paths import resource
from paretone.plug_ins import OURS, streams_lent
from paretone.setting.knobs import defaults
from paretone.setting.plan import Part, imported
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import Technique, applying_to, find, technique, techniques
from paretone.techniques.base import Conflict, Context, fault_of_slot
from paretone.techniques.registry import GROUP, problems, technique_mark
from paretone.techniques.resolving import known
from paretone_app.features.registry import FEATURES

ROOM = resource().parent / "engine" / "paretone" / "techniques"


def declared() -> dict[str, str]:
    project = tomllib.loads((ROOM.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["entry-points"][GROUP]


def test_every_technique_is_installed_as_declared_and_is_declared_under_its_name() -> None:
    installed = {one.name: one.value for one in entry_points(group=GROUP) if one.dist and one.dist.name == OURS}
    assert installed == declared(), "install Paretone again: packaging/dev.py does"
    assert not problems()
    for name, value in declared().items():
        module, _, attribute = value.partition(":")
        assert module == f"paretone.techniques.{name}" and attribute == "TECHNIQUE"
        assert find(name) is imported(value) and technique(name).name == name


def test_lists_have_one_order_and_offer_what_a_family_allows() -> None:
    listed = techniques()
    assert [one.place for one in listed] == sorted({one.place for one in listed})
    assert len({one.title for one in listed}) == len(listed)
    flow = applying_to("flow", ())
    assert flow and all("flow" in one.families and not one.options for one in flow)
    without = {one.name for one in applying_to("language", ())}
    plain, layered = (
        {one.name for one in applying_to("language", (), MelFlow((), transformer=one))} for one in (False, True)
    )
    assert {"average_velocity", "steps", "multistep"} <= plain - without and "guidance_free" not in layered
    assert layered - plain == {one.name for one in flow if one.main_slot == "skipping"}


def test_unknown_techniques_are_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"no technique named 'warp'; known techniques: ditreducio"):
        technique("warp")


@pytest.mark.parametrize(("slot", "meant"), [("guidance:combinig", "guidance:combining"), ("sampling:", "sampling")])
def test_a_misspelt_slot_is_refused_wherever_it_is_named(slot: str, meant: str) -> None:
    """It would exclude nothing, and nothing would be found in it."""
    assert fault_of_slot(slot).startswith(f"{slot!r} (did you mean {meant!r}?); it must be one of passages, ")
    with pytest.raises(ValueError, match="did you mean"):
        Context(known("f5-mini"), Setting("f5-mini"), UsedTechnique("steps")).title_in(slot)
    with pytest.raises(ValueError, match="did you mean"):
        Conflict("Both decide about it.", slot)


def test_a_part_is_imported_when_it_is_made() -> None:
    assert Part.of("builtins:dict", steps=7, sway=-1.0).make({"a": 1}) == {"a": 1, "steps": 7, "sway": -1.0}
    assert Part.of("builtins:dict", b=1, a=2) == Part.of("builtins:dict", a=2, b=1)
    for target in ("nowhere.at_all:thing", "builtins:thing"):
        with pytest.raises(SettingError, match="could not be imported"):
            Part.of(target).make()


@pytest.mark.parametrize(("every", "said"), [(2, "second"), (12, "12th"), (22, "22nd")])
def test_every_so_many_steps_are_said_as_people_say_them(every: int, said: str) -> None:
    named = {"frozen_prefix": "every", "layer_reuse": "every", "guidance_stride": "every", "blockwise": "text_every"}
    for name, knob in named.items():
        one = technique(name)
        described = one.describe(defaults(one.knobs).replace(**{knob: every}))
        assert f"every {said}" in described, described


# Nobody names a technique but itself: no import, no string, no identifier outside its own folder, or its own feature. A
# feature of the window that belongs to a technique says so: ``technique="name"``.
ROOT = Path(paretone.__file__).parents[2]
WORDS = {
    # What models and samplers have by themselves: options, properties, algorithms.
    *(knob.name for entry in catalogue.models() for knob in entry.options),
    *ModelInfo.__dataclass_fields__,
    *(path.stem for path in (ROOT / "engine/paretone/sampling").glob("*.py")),
    *(path.stem for path in (ROOT / "engine/paretone/models/kernels").glob("*.py")),
}
"""Names that mean something else, too: a technique that bears one may not be imported or be named by its title."""
KNOBS = {knob.name for one in techniques() for knob in one.knobs}
"""Names that are also those of knobs: as a string, such a name may mean the knob."""


def own(one: Technique) -> list[Path]:
    """Places where a technique may be named."""
    rooms = [ROOT / f"engine/paretone/techniques/{one.name}.py", ROOT / f"engine/paretone/techniques/{one.name}"]
    features = ROOT / "app/paretone_app/features"
    for feature in FEATURES:
        if feature.technique == one.name:
            folder, file = features / feature.name, features / f"{feature.name}.py"
            rooms += [folder] if folder.is_dir() else [file, features / "registry.py"]
    return rooms


def named(tree: ast.AST, one: Technique) -> Iterator[tuple[int, str]]:
    """Lines of ``tree`` that name the technique, and how."""
    module, distinctive = f"paretone.techniques.{one.name}", one.name not in WORDS
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    title = re.compile(rf"\b{re.escape(one.title.partition(' (')[0])}\b")
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import) and any(f"{alias.name}.".startswith(f"{module}.") for alias in node.names):
            yield line, "imports it"
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            if any(f"{name}.".startswith(f"{module}.") for name in imported):
                yield line, "imports it"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if node.value == one.title or (node.value == one.name and distinctive and one.name not in KNOBS):
                yield line, f"says {node.value!r}"
            elif distinctive and title.search(node.value):
                yield line, f"says its title in {node.value!r}"
        elif distinctive:
            for field in ("id", "attr", "name", "asname", "arg"):
                identifier = getattr(node, field, None)
                if isinstance(identifier, str) and one.name in identifier.lower():
                    yield line, f"is called {identifier}"


def findings(top: str) -> list[str]:
    """All that name a technique in ``top`` and are not its own."""
    found = []
    rooms = {one.name: own(one) for one in techniques()}
    for path in sorted((ROOT / top).rglob("*.py")):
        # Benches compare techniques.
        if "bench" in path.relative_to(ROOT).parts or path.stem == "bench" or path.stem.endswith("_bench"):
            continue
        text = path.read_text(encoding="utf-8")
        tree, lowered = None, text.lower()
        for one in techniques():
            if one.name not in lowered and one.title.partition(" (")[0].lower() not in lowered:
                continue
            if any(path == room or room in path.parents for room in rooms[one.name]):
                continue
            tree = tree or ast.parse(text)
            place = path.relative_to(ROOT).as_posix()
            found += [f"{place}:{line}: {one.name}: {how}" for line, how in named(tree, one)]
    return found


def test_nobody_names_a_technique_but_itself() -> None:
    found = [*findings("engine"), *findings("app")]
    assert not found, "\n".join(found)


def test_only_features_of_a_technique_import_each_other() -> None:
    of = {feature.name: feature.technique for feature in FEATURES}
    found = []
    for path in sorted((ROOT / "app" / "paretone_app").rglob("*.py")):
        parts = path.relative_to(ROOT / "app" / "paretone_app").with_suffix("").parts
        if parts[:2] == ("features", "registry"):
            continue
        mine = of.get(parts[1], "") if parts[0] == "features" else ""
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paretone_app.features."):
                theirs = of.get(str(node.module).split(".")[2], "")
                if theirs not in ("", mine):
                    found.append(f"{path.relative_to(ROOT).as_posix()}:{node.lineno}: imports {node.module}")
    assert not found, "\n".join(found)


def test_every_technique_of_ours_declares_a_mark_unlike_all_others() -> None:
    marks = [one.mark for one in techniques()]
    assert len(marks) >= 25 and None not in marks and len(set(marks)) == len(marks)
    assert {one.hue for one in marks} == set(HUES) and {one.shape for one in marks} <= set(SHAPES)
    assert not set(SHAPES) & set(DERIVED_SHAPES) and all(corners(one) for one in DERIVED_SHAPES)
    derived = {derived_mark(f"plug_in_{number}") for number in range(500)}
    assert derived == set(itertools.starmap(Mark, itertools.product(HUES, DERIVED_SHAPES))), "all are used"
    assert derived.isdisjoint(one.mark for one in techniques())
    assert technique_mark("adams_bashforth") == Mark("blue", "right"), "in every process and release"


def test_streams_are_lent_to_one_thread_alone(capsys: pytest.CaptureFixture[str]) -> None:
    lent, done = threading.Event(), threading.Event()

    def import_plug_in() -> None:
        with streams_lent():
            lent.set()
            done.wait(10)
            print("of the plug-in")

    importing = threading.Thread(target=import_plug_in)
    importing.start()
    assert lent.wait(10)
    before = sys.stdout
    with streams_lent():
        print("of another plug-in")
    print("result")
    done.set()
    importing.join()
    found = capsys.readouterr()
    assert found.out == "result\n" and found.err.splitlines() == ["of another plug-in", "of the plug-in"]
    assert sys.stdout is not before
