"""Blocks of code in the documents, and the command lines in them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "resources" / "docs"
DOCUMENTS = [ROOT / "README.md", *sorted(PAGES.rglob("*.md"))]
"""All that tells how Paretone is used. The changelog tells what was."""
SHELL = ("", "sh", "bash", "console")
"""What blocks of commands are called; a block that names no language is one. Output is ``text``."""
_FENCE = re.compile(
    r"^ *(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^ *(?P=fence)\s*$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    document: Path
    line: int
    language: str
    """As the document writes it; in braces for what the site fills in."""
    text: str


@dataclass(frozen=True)
class Command:
    document: Path
    line: int
    text: str
    """As printed, on one line and without its comment."""

    @property
    def words(self) -> list[str]:
        """As the shell would split it."""
        return shlex.split(self.text)

    @property
    def arguments(self) -> list[str] | None:
        """What ``paretone`` is given, or ``None`` if the command is another program's."""
        return self.words[1:] if self.words[0] == "paretone" else None

    def __str__(self) -> str:
        return f"{name(self.document)}:{self.line}: {self.text}"


def name(document: Path) -> str:
    return document.relative_to(PAGES if document.is_relative_to(PAGES) else ROOT).as_posix()


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(document, line, found["language"].strip(), found["text"])


def commands(document: Path) -> Iterator[Command]:
    """The command lines in the blocks of a document in their order."""
    for block in blocks(document):
        if block.language in SHELL:
            yield from _lines(block)


def _lines(block: Block) -> Iterator[Command]:
    waiting = ""
    for number, line in enumerate(block.text.splitlines(), block.line):
        waiting = f"{waiting} {line.strip().removesuffix(chr(92)).strip()}".strip()
        if line.rstrip().endswith("\\"):
            continue
        text = shlex.join(shlex.split(waiting, comments=True))
        if text:
            # As it stands there, but for the comment: quotes that are not needed stay out of it.
            yield Command(block.document, number, _without_comment(waiting))
        waiting = ""


def _without_comment(line: str) -> str:
    for place in (found.start() for found in re.finditer(r"\s#", line)):
        try:
            if shlex.split(line[:place]) == shlex.split(line, comments=True):
                return line[:place].strip()
        except ValueError:
            continue
    return line
