"""The pages of the techniques, and what pages take from the code."""

import inspect
import itertools
import re
import tomllib
from dataclasses import fields

import pytest

from paretone.sampling.demasking import CanvasRun, Open
from paretone.sampling.flow import Evaluator
from paretone.techniques.base import SLOTS
from paretone.techniques.registry import GROUP, technique
from paretone.techniques.resolving import PLANS
from tests.documents.blocks import PAGES, ROOT, blocks, commands

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OURS = tuple(PROJECT["project"]["entry-points"][GROUP])
FOLDER = PAGES / "techniques"
SECTIONS = ("When to use it", "Try it", "What you hear and see", "Knobs", "What it combines with", "Caveats", "More")


def test_every_technique_has_a_page_and_every_page_a_technique() -> None:
    assert {one.stem for one in FOLDER.glob("*.md")} - {"index"} == set(OURS)


@pytest.mark.parametrize("called", OURS)
def test_a_page_says_what_people_ask(called: str) -> None:
    """The page is called as the technique is, takes facts, knobs and combinations from it, and shows how to use it."""
    page = FOLDER / f"{called}.md"
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [technique(called).title, *SECTIONS]
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


TUTORIAL = PAGES / "your-own-technique.md"


def table_after(words: str) -> list[list[str]]:
    """The cells of the first table in the tutorial after ``words``, without its heading."""
    after = TUTORIAL.read_text(encoding="utf-8").split(words)[1]
    lines = re.search(r"(?:^\|.*\n)+", after, re.MULTILINE).group().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_tutorial_lists_every_part_of_a_plan() -> None:
    found = {(family, part.strip("`")) for family, part, *_ in table_after("before the arguments of the `Part`")}
    parts = {(family, one.name) for family, plan in PLANS.items() for one in fields(plan) if one.type == "Part | None"}
    assert found == parts


def test_the_tutorial_lists_every_slot() -> None:
    assert [slot.strip("`") for slot, _ in table_after("resolve in the order of the slots")] == list(SLOTS)


@pytest.mark.parametrize("target", [Evaluator, CanvasRun, Open], ids=lambda one: one.__name__)
def test_the_tutorial_says_what_a_part_must_offer(target: type) -> None:
    """All of it, with the arguments that it has, and the code says it as well."""
    members: dict[str, object] = {}
    for one in reversed(target.__mro__[:-1]):
        if one.__module__.startswith("paretone."):
            members |= {each: None for each in one.__annotations__ if not each.startswith("_")}
            members |= {each: value for each, value in vars(one).items() if not each.startswith("_")}
    said = [member.strip("`") for member, _ in table_after(f"`{target.__module__}.{target.__name__}`")]
    signatures = []
    for member, value in members.items():
        if inspect.isfunction(value):
            assert value.__doc__, f"{member} has no docstring"
            signatures.append(f"{member}({', '.join(list(inspect.signature(value).parameters)[1:])})")
        else:
            signatures.append(member)
    assert sorted(said) == sorted(signatures)
