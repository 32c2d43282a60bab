"""Directives that fill pages from the code, players for the sounds that pages link to, and contents that may be absent.

A page says ```` ```{from-code} knobs steps ````: the function of that name in ``PARTS`` writes Markdown, which is
read as if it stood in the page.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

import of_code
import of_techniques
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

PARTS: dict[str, Callable[[str], str]] = {
    "facts": of_techniques.facts,
    "knobs": of_techniques.knobs,
    "combinations": of_techniques.combinations,
    "techniques": of_techniques.all_techniques,
    "models": of_code.models,
    "options": of_code.options,
    "commands": of_code.commands,
    "command": of_code.command,
    "exit-codes": of_code.exit_codes,
    "benches": of_code.benches,
    "views": of_code.views,
    "targets": of_code.targets,
    "classes": of_code.classes,
    "public": of_code.public,
    "measures": of_code.measures,
    "terms": of_code.terms,
    "judges": of_code.judges,
}
_PATTERN = re.compile(r"[\w/-]+\*")
_README = re.compile(r"\]\((?:\.\./)+README\.md(?:#[^)\s]*)?\)")
_SOUNDS = (".ogg", ".wav", ".flac")


class FromCode(SphinxDirective):
    """``{from-code} PART [ARGUMENT]``."""

    required_arguments = 1
    optional_arguments = 1
    has_content = False

    def run(self) -> list[nodes.Node]:
        part, argument = self.arguments[0], " ".join(self.arguments[1:])
        if part not in PARTS:
            raise self.error(f"nothing is written for {part!r}; there is {', '.join(PARTS)}")
        try:
            text = PARTS[part](argument)
        except Exception as error:
            raise self.error(f"{part} {argument}: {type(error).__name__}: {error}") from error
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def add_players(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put a player after every link to a sound."""
    if app.builder.format != "html":
        return
    folder = relative_uri(app.builder.get_target_uri(page), "_downloads")
    for link in list(doctree.findall(addnodes.download_reference)):
        if link["reftarget"].endswith(_SOUNDS) and "filename" in link:
            place = f"{folder}/{link['filename']}"
            player = f'<audio controls preload="none" src="{place}"></audio>'
            link.parent.insert(link.parent.index(link) + 1, nodes.raw("", player, format="html"))


def drop_absent(app: Sphinx, page: str, source: list[str]) -> None:
    """Leave the patterns out of the contents that no page matches: Sphinx would warn of each."""
    if page != app.config.root_doc:
        return
    pages = app.env.found_docs
    source[0] = "\n".join(
        line for line in source[0].split("\n") if not _PATTERN.fullmatch(line) or fnmatch.filter(pages, line)
    )


def lead_home(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to the README, which is no page, lead to the first page, which says the same."""
    source[0] = _README.sub(f"](/{app.config.root_doc}.md)", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Make all of it known to Sphinx."""
    app.add_directive("from-code", FromCode)
    app.connect("doctree-resolved", add_players)
    app.connect("source-read", drop_absent)
    app.connect("source-read", lead_home)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
