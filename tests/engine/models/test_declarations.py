"""Models are declared in their own folders, and no other file names one."""

from __future__ import annotations

import ast
from importlib.metadata import entry_points
from pathlib import Path

import paretone
from paretone.models.catalogue import GROUP, catalogue, models
from paretone.plug_ins import OURS

ROOT = Path(paretone.__file__).parents[2]
OWN = ("f5", "megatts3", "cosyvoice2", "cosyvoice3", "llasa", "omnivoice", "minis")
"""Folders of models in ``engine/paretone/models``."""
EXCEPTIONS = {
    "app/paretone_app/features/dropping.py",
    "engine/paretone/export/programs/crispasr.py",
    "engine/paretone/export/programs/f5_triton.py",
    "engine/paretone/export/programs/omnivoice.py",
    "engine/paretone/export/programs/vllm_omni.py",
    "engine/paretone/extras.py",
    "engine/paretone/measure/roofline/published.py",
    "engine/paretone/setting/compatibility.py",
    "engine/paretone/techniques/blockwise/__init__.py",
    "engine/paretone/techniques/ditreducio/__init__.py",
    "engine/paretone/techniques/fewer_steps.py",
    "engine/paretone/techniques/guidance_free/__init__.py",
    "engine/paretone/techniques/spade/__init__.py",
    "engine/paretone/techniques/spade/views.py",
    "engine/paretone/techniques/speculative/__init__.py",
    "engine/paretone/training/recipes/natural_f5.py",
    "engine/paretone/training/recipes/natural_language.py",
}
"""Files that still name one, until their declaration says what they need."""


def naming(path: Path) -> set[str]:
    """Models that a file names: a text that is an id or a title. Docstrings, and sentences that say on which model a
    figure was measured, name none."""
    names = {name for one in models() for name in (one.id, one.title)}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    texts = (one for one in ast.walk(tree) if isinstance(one, ast.Constant) and id(one) not in told)
    return {one.value for one in texts if isinstance(one.value, str) and one.value in names}


def test_no_other_file_names_a_model() -> None:
    rooms = [ROOT / "engine" / "paretone" / "models" / name for name in OWN]
    found = {}
    for path in sorted((*(ROOT / "engine").rglob("*.py"), *(ROOT / "app").rglob("*.py"))):
        # Benches compare models.
        bench = "bench" in path.parts or path.stem == "bench" or path.stem.endswith("_bench")
        if not bench and not any(room in path.parents for room in rooms) and (named := naming(path)):
            found[path.relative_to(ROOT).as_posix()] = named
    assert found.keys() == EXCEPTIONS, found


def test_ours_are_registered_like_a_plug_in() -> None:
    assert not catalogue().problems and not catalogue().plug_ins
    ours = {one.value for one in entry_points(group=GROUP) if one.dist and one.dist.name == OURS}
    assert {value.split(".")[2] for value in ours} == set(OWN), "install Paretone again: packaging/dev.py does"
    assert models()[0].id == "f5-mini"
    assert [one.place for one in models()] == sorted({one.place for one in models()})
