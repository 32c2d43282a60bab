"""Everything that documents name exists: linked files and headings, places of the repository, commands in sentences."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from paretone.commands.arguments import ArgumentsError
from tests.engine.test_guides import read

ROOT = Path(__file__).resolve().parents[2]
CHANGES = ROOT / "CHANGELOG.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("resources/docs/**/*.md")])
ARCHITECTURE = ROOT / "resources" / "docs" / "architecture.md"
PRESENT = [one for one in DOCUMENTS if one != CHANGES]
"""Those that do not tell of what was, too."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PLACE = re.compile(r"`((?:app|engine|packaging|resources|tests)/[^`\s]*)`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SAID = re.compile(r"`(paretone [^`…]+)`")
_MODULE = re.compile(r"\bpython3? -m ([\w.]+)")


def text(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def anchors(document: Path) -> set[str]:
    """Link targets of the headings of ``document``."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(text(document))}


def said(document: Path) -> list[str]:
    """The commands that stand in the sentences of ``document``; those in blocks have a test of their own."""
    return [" ".join(one.split()) for one in _SAID.findall(_BLOCK.sub("", text(document)))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one.name)
def test_links_and_pictures_lead_somewhere(document: Path) -> None:
    for target in (one for one in _LINK.findall(text(document)) if "://" not in one):
        path, _, anchor = target.partition("#")
        linked = document.parent / path if path else document
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("document", PRESENT, ids=lambda one: one.name)
def test_places_and_modules_exist(document: Path) -> None:
    for place in _PLACE.findall(text(document)):
        assert list(ROOT.glob(place.rstrip("/"))), place
    for module in _MODULE.findall(text(document)):
        assert find_spec(module) is not None, module


def test_the_architecture_names_every_room() -> None:
    """Each package directly in ``app`` and ``engine``, and nothing that is gone; the README leads there."""
    named = {place.rstrip("/") for place in _PLACE.findall(text(ARCHITECTURE))}
    rooms = {
        f"{top}/{one.name}"
        for top in ("app/paretone_app", "engine/paretone")
        for one in (ROOT / top).iterdir()
        if (one / "__init__.py").is_file()
    }
    assert rooms <= named
    assert len(named) > len(rooms) + 20, "the walks name files"
    assert all((ROOT / one).exists() for one in named)
    assert "resources/docs/architecture.md" in _LINK.findall(text(ROOT / "README.md"))


def test_every_picture_is_shown_somewhere() -> None:
    shown = {Path(one).name for document in DOCUMENTS for one in _LINK.findall(text(document))}
    pictures = [one for one in (ROOT / "resources" / "docs").rglob("*") if one.suffix in (".png", ".webp")]
    assert {one.name for one in pictures} <= shown
    assert pictures


@pytest.mark.parametrize("document", PRESENT, ids=lambda one: one.name)
def test_commands_in_sentences_are_understood(document: Path) -> None:
    """They may leave out what a command cannot do without, but name no option or choice that it does not know."""
    for command in said(document):
        # Of help, which is a command, too, the process would end here.
        with suppress(SystemExit):
            try:
                read(shlex.split(command)[1:])
            except ArgumentsError as error:
                if not re.search("(are|is) required|expected one argument", str(error)):
                    pytest.fail(f"{command}\n{error}")
