"""Every command that a guide prints is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import bench, cli
from engine.commands.parsing import ArgumentsError, Parser

ROOT = Path(__file__).resolve().parents[2]
GUIDES = [ROOT / "README.md", *sorted((ROOT / "resources" / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands(guide: Path) -> Iterator[list[str]]:
    """The words after ``paretone`` in the guide's blocks of code, without comments."""
    for block in _BLOCK.findall(guide.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip().startswith("paretone "):
                yield shlex.split(line, comments=True)[1:]


def read(words: list[str]) -> None:
    """Parse ``words`` as the command line does before it runs anything."""
    if words[0] != "bench":
        cli.parser().parse_args(words)
    elif len(words) > 1:
        parser = Parser()
        parser.add_argument("--json", action="store_true")
        getattr(bench.bench(words[1]), "add_arguments", lambda _: None)(parser)
        parser.parse_args(words[2:])


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_commands_are_read_as_printed(guide: Path) -> None:
    for words in commands(guide):
        try:
            read(words)
        except ArgumentsError as error:
            pytest.fail(f"{guide.name}: paretone {shlex.join(words)}\n{error}")


def test_commands_are_found() -> None:
    assert sum(1 for guide in GUIDES for _ in commands(guide)) > 40


def test_a_command_that_there_is_not_is_refused() -> None:
    for words in (["spoke", "--text", "One."], ["bench", "ssd", "--tolerances", "0.4"]):
        with pytest.raises(ArgumentsError):
            read(words)
