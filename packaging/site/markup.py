"""Markdown for what the code says: tables, and docstrings, which are written in reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_ROLE = re.compile(r":(?:\w+:)?\w+:`(~?)([^`<]+?)`")
_CODE = re.compile(r"``(.+?)``", re.DOTALL)
_SPAN = re.compile(r"(`[^`]*`)")
_SPECIAL = re.compile(r"([\\*_<>\[\]{}|~$])")


def escaped(text: str) -> str:
    """``text`` in which nothing is taken for markup."""
    return _SPECIAL.sub(r"\\\1", text)


def prose(docstring: str) -> str:
    """A docstring as Markdown: roles and double backquotes become code, everything else stays as it is written."""
    text = _ROLE.sub(lambda found: f"`{_name(*found.groups())}`", docstring)
    text = _CODE.sub(lambda found: f"`{' '.join(found[1].split())}`", text)
    return "".join(part if part.startswith("`") else escaped(part) for part in _SPAN.split(text))


def paragraphs(docstring: str) -> str:
    """The same for a whole docstring, paragraph by paragraph. Indented lines are examples."""
    return "\n\n".join(
        f"```text\n{part}\n```" if part.startswith("    ") else prose(part) for part in docstring.split("\n\n")
    )


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, whose cells are Markdown on one line."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(' '.join(cell.split()) or ' ' for cell in line)} |" for line in lines)


def bullets(items: Iterable[str]) -> str:
    """A list, one line for each of ``items``."""
    return "\n".join(f"* {item}" for item in items)


def _name(short: str, target: str) -> str:
    """The name that a role shows: the last part of the path after a tilde."""
    return target.rpartition(".")[2] if short else target
