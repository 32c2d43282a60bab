"""Nobody names a technique but itself: no import, no string, no identifier outside its own folder, or its own feature.

A feature of the window that belongs to a technique says so: ``technique="name"`` in its ``__init__.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import paretone
from paretone.models import catalogue
from paretone.models.base import ModelInfo
from paretone.techniques import Technique, techniques
from paretone_app.features.registry import FEATURES

ROOT = Path(paretone.__file__).parents[2]
WORDS = {
    # What models and samplers have by themselves: options, properties, algorithms.
    *(knob.name for entry in catalogue.MODELS for knob in entry.options),
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
    for said in (ROOT / "app/paretone_app/features").glob("*/__init__.py"):
        if f'technique="{one.name}"' in said.read_text(encoding="utf-8"):
            rooms.append(said.parent)
    return rooms


def docstrings(tree: ast.AST) -> set[int]:
    """The ids of the nodes that are docstrings, those of fields included."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def named(tree: ast.AST, one: Technique) -> Iterator[tuple[int, str]]:
    """Lines of ``tree`` that name the technique, and how."""
    module, told = f"paretone.techniques.{one.name}", docstrings(tree)
    distinctive = one.name not in WORDS
    title = re.compile(rf"\b{re.escape(one.title.partition(' (')[0])}\b")
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import) and any(f"{alias.name}.".startswith(f"{module}.") for alias in node.names):
            yield line, "imports it"
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            if any(f"{name}.".startswith(f"{module}.") for name in imported):
                yield line, "imports it"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
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
        text = path.read_text(encoding="utf-8")
        tree, lowered = None, text.lower()
        for one in techniques():
            if one.name not in lowered and one.title.partition(" (")[0].lower() not in lowered:
                continue
            if any(path == room or room in path.parents for room in rooms[one.name]):
                continue
            tree = tree or ast.parse(text)
            found += [
                f"{path.relative_to(ROOT).as_posix()}:{line}: {one.name}: {how}" for line, how in named(tree, one)
            ]
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


@pytest.mark.parametrize(
    ("source", "how"),
    [
        ("from paretone.techniques import spade", "imports it"),
        ("from paretone.techniques.spade.training import ALPHA", "imports it"),
        ("import paretone.techniques.spade.training", "imports it"),
        ("one = find('spade')", "says 'spade'"),
        ("text = f'Use SPADE, then {x}.'", "says its title"),
        ("def train_spade(): pass", "is called train_spade"),
        ("def train(spade_depth): pass", "is called spade_depth"),
        ("train(with_spade=True)", "is called with_spade"),
        ("from paretone.techniques import find as find_spade", "is called find_spade"),
    ],
)
def test_the_test_would_see_it(source: str, how: str) -> None:
    (spade,) = (one for one in techniques() if one.name == "spade")
    assert any(how in said for _, said in named(ast.parse(source), spade))
