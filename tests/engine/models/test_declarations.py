"""Models are declared in their own folders, and no other file names one."""

import ast
from importlib.metadata import entry_points
from pathlib import Path

import paretone
from paretone.models.catalogue import GROUP, catalogue, models
from paretone.plug_ins import OURS

ROOT = Path(paretone.__file__).parents[2]
OWN = ("f5", "megatts3", "cosyvoice2", "cosyvoice3", "llasa", "omnivoice", "qwen3_tts", "minis")
"""Folders of models in ``engine/paretone/models``."""


def naming(path: Path) -> set[str]:
    """Models that a file names: a text that is an id or a title. Docstrings, and sentences that say on which model a
    figure was measured, name none. Techniques and the roofline say of which models their papers' settings and figures
    are: there, a model may not be compared with, or looked up by."""
    names = {name for one in models() for name in (one.id, one.title)}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    nodes = ast.walk(tree)
    if "techniques" in path.parts or path.name == "published.py":
        choosing = (one for one in nodes if isinstance(one, ast.Compare | ast.Subscript | ast.Dict | ast.match_case))
        nodes = (each for one in choosing for each in ast.walk(one))
    texts = (one for one in nodes if isinstance(one, ast.Constant) and id(one) not in told)
    return {one.value for one in texts if isinstance(one.value, str) and one.value in names}


def test_no_other_file_names_a_model() -> None:
    files = sorted((*(ROOT / "engine").rglob("*.py"), *(ROOT / "app").rglob("*.py")))
    rooms = {ROOT / "engine" / "paretone" / "models" / name for name in OWN}
    others = [one for one in files if "bench" not in (*one.parts, one.stem.rpartition("_")[2])]
    found = {str(one): named for one in others if not rooms & {*one.parents} and (named := naming(one))}
    assert not found


def test_ours_are_registered_like_a_plug_in() -> None:
    assert not catalogue().problems and not catalogue().plug_ins
    ours = {one.value for one in entry_points(group=GROUP) if one.dist and one.dist.name == OURS}
    assert {value.split(".")[2] for value in ours} == set(OWN), "install Paretone again: packaging/dev.py does"
    assert models()[0].id == "f5-mini"
    assert [one.place for one in models()] == sorted({one.place for one in models()})
