"""The pages of the techniques, and what pages take from the code."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path

import pytest

from engine.techniques.registry import GROUP, technique
from tests.documents.blocks import PAGES, ROOT, blocks, commands, name

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OURS = tuple(PROJECT["project"]["entry-points"][GROUP])
FOLDER = PAGES / "techniques"
SECTIONS = (
    "When to use it",
    "Try it",
    "What you hear and see",
    "Knobs",
    "What it combines with",
    "Caveats",
    "More",
)


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_technique_has_a_page_and_every_page_a_technique() -> None:
    assert {one.stem for one in FOLDER.glob("*.md")} - {"index"} == set(OURS)


@pytest.mark.parametrize("called", OURS)
def test_a_page_says_what_people_ask(called: str) -> None:
    """The page is called as the technique is, takes facts, knobs and combinations from it, and shows how to use it."""
    page = FOLDER / f"{called}.md"
    assert headings(page) == [technique(called).title, *SECTIONS]
    filled = [one.language for one in blocks(page) if one.language.startswith("{")]
    assert filled == [f"{{from-code}} {part} {called}" for part in ("facts", "knobs", "combinations")]
    told = [one.arguments or [] for one in commands(page)]
    assert any(words[0] == "speak" and {called} & _used(words) for words in told), "a command that uses it"


def _used(words: list[str]) -> set[str]:
    """The techniques of a command: those it names, and those that a file of their own or a profile brings."""
    named = {word.partition(":")[0] for before, word in itertools.pairwise(words) if before == "--technique"}
    files = {f"--{one.artefact_file.option}": one.name for one in map(technique, OURS) if one.artefact_file}
    prepared = {"ditreducio"} if "--profile" in words else set()
    return named | prepared | {files[word] for word in words if word in files}


def test_long_guides_are_linked_from_the_pages() -> None:
    """Someone who reads a technique's page finds what else there is on it."""
    linked = set()
    for page in FOLDER.glob("*.md"):
        linked |= {one.partition("#")[0] for one in re.findall(r"\]\(\.\./([^)]+)\)", page.read_text(encoding="utf-8"))}
    guides = {"average-velocity", "guidance-free", "guidance", "solvers-and-grids", "ditreducio-improved"}
    guides |= {"dual-block-cache", "drafts-and-students", "omnivoice", "roofline", "measurements"}
    assert {f"{one}.md" for one in guides} <= linked


def test_pages_are_found_below_the_folders() -> None:
    assert {name(one.document) for one in commands(FOLDER / "steps.md")} == {"techniques/steps.md"}
