"""What reference pages take from the code: commands, models, messages, public classes, measures and terms.

Classes are read from their source and not imported: they import what computes, or each other.
"""

from __future__ import annotations

import argparse
import ast
import os
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from markup import bullets, escaped, paragraphs, prose, table
from of_techniques import knob_table

import paretone
from paretone import bench, cli
from paretone.export import targets as exports
from paretone.measure.evaluation.judges import JUDGES
from paretone.measure.metrics import HIGHER, LOWER, METRICS, NEITHER
from paretone.models import catalogue
from paretone.views import views as all_views
from paretone_app.features.glossary.model import TERMS
from paretone_app.features.registry import FEATURES

_WIDTH = 100
_BETTER = {LOWER: "lower", HIGHER: "higher", NEITHER: "neither"}


def models(_: str = "") -> str:
    rows = [
        (f"`{one.id}`", escaped(one.title), one.family, escaped(one.summary), escaped(one.licence))
        for one in catalogue.models()
    ]
    return table(("model", "title", "family", "what it is", "licence of the weights"), rows)


def options(model: str) -> str:
    return knob_table(catalogue.entry(model).options) or "It has no options."


# --- The command line -------------------------------------------------------------------------------------------------
def commands(_: str = "") -> str:
    listed = _subcommands(cli.parser())
    assert listed is not None
    rows = [
        (f"`paretone {name}`", escaped(summary))
        for name, summary in ((one.dest, one.help or "") for one in listed._choices_actions)
    ]
    return table(("command", "what it does"), rows)


def command(_: str = "") -> str:
    """The help of every command and of the commands below it, each under a heading of its own."""
    return "\n\n".join(
        f"## {parser.prog}\n\n{escaped(parser.description or '')}\n\n```text\n{_help(parser)}\n```"
        for parser in _parsers(cli.parser())
    )


def exit_codes(_: str = "") -> str:
    lines = [line.split(None, 1) for line in (cli.parser().epilog or "").splitlines()[1:]]
    return table(("exit code", "meaning"), [(code, escaped(meaning)) for code, meaning in lines])


def benches(_: str = "") -> str:
    """Every bench with all that its module says of itself."""
    parts = []
    for name, module in bench.benches().items():
        docstring = ast.get_docstring(_tree(module)) or ""
        parts.append(f"### paretone bench {name}\n\n{paragraphs(docstring)}")
    return "\n\n".join(parts)


def _parsers(top: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands below ``top``, each followed by its own. Those that read their arguments themselves are left
    out."""
    found = _subcommands(top)
    for one in {} if found is None else found.choices.values():
        if one.add_help:
            yield one
        yield from _parsers(one)


def _subcommands(parser: argparse.ArgumentParser) -> argparse._SubParsersAction | None:
    return next((one for one in parser._actions if isinstance(one, argparse._SubParsersAction)), None)


def _help(parser: argparse.ArgumentParser) -> str:
    """The help without usage, which repeats the options, and description; in lines of one length, whatever terminal
    there is."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(_WIDTH)
    try:
        parts = parser.format_help().strip().split("\n\n")
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n\n".join(part for part in parts[1:] if part.replace("\n", " ") != parser.description)


# --- Views, exports, judges -------------------------------------------------------------------------------------------
def views(_: str = "") -> str:
    """All views with the question that each answers."""
    rows = [
        (f"`{one.name}`", escaped(one.title), escaped(one.question), ", ".join(one.families), escaped(one.source))
        for one in all_views()
    ]
    return table(("view", "in the window", "question", "model families", "source"), rows)


def targets(_: str = "") -> str:
    """The forms that a profile can be exported in."""
    rows = [(f"`{one.name}`", escaped(one.title), escaped(one.summary)) for one in exports.targets()]
    return table(("target", "title", "what is written"), rows)


def judges(_: str = "") -> str:
    titles = {one.name: one.title for one in METRICS}
    rows = [
        (
            f"`{one.name}`",
            escaped(one.title),
            escaped(", ".join(titles[name] for name in one.metrics if name in titles)),
        )
        for one in JUDGES
    ]
    return table(("judge", "title", "what it gives"), rows)


# --- Classes ----------------------------------------------------------------------------------------------------------
def classes(module: str) -> str:
    """Every public class of a module: its docstring and its fields. The module's own come first, under its name."""
    tree = _tree(module)
    found = [one for one in tree.body if isinstance(one, ast.ClassDef) and not one.name.startswith("_")]
    heading = f"## {module.rpartition('.')[2].capitalize()}\n\n`{module}`"
    return "\n\n".join([heading, paragraphs(ast.get_docstring(tree) or ""), *(_class(one, "###") for one in found)])


def public(_: str = "") -> str:
    """The public interface of ``paretone``: every name that it exports."""
    parts = []
    for name, module in paretone._PUBLIC.items():
        tree, place = _defining(module, name)
        for one in tree.body:
            if isinstance(one, ast.ClassDef) and one.name == name:
                parts.append(_class(one, "##", place))
            elif isinstance(one, ast.FunctionDef) and one.name == name:
                parts.append(_function(one, "##", f"{place}."))
    return "\n\n".join(parts)


def _defining(module: str, name: str) -> tuple[ast.Module, str]:
    """The module that defines ``name``, which ``module`` may only pass on."""
    tree = _tree(module)
    for one in tree.body:
        if isinstance(one, ast.ImportFrom) and any(each.name == name for each in one.names) and one.module:
            return _defining(one.module, name)
    return tree, module


def _class(one: ast.ClassDef, heading: str, module: str = "") -> str:
    """A class under a heading; with a ``module``, its place and its methods, too."""
    bases = ", ".join(ast.unparse(base) for base in one.bases)
    parts = [f"{heading} {one.name}"]
    if module:
        parts.append(f"`{module}.{one.name}`")
    if bases and bases not in ("Command", "Event"):
        parts.append(f"A kind of `{bases}`.")
    parts.append(paragraphs(ast.get_docstring(one) or ""))
    fields = list(_fields(one))
    if any(meaning for _, _, meaning in fields):
        parts.append(table(("field", "type", "meaning"), fields))
    elif fields:
        parts.append(table(("field", "type"), [field[:2] for field in fields]))
    methods = [each for each in one.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]
    parts += [_function(each, f"{heading}#") for each in methods if module]
    return "\n\n".join(part for part in parts if part)


def _fields(one: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """The annotated fields of a class with the docstring after each; constants of the class are left out."""
    for field, after in zip(one.body, [*one.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        kind = ast.unparse(field.annotation)
        if field.target.id.startswith("_") or kind.startswith("ClassVar"):
            continue
        said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
        default = f" = {ast.unparse(field.value)}" if isinstance(field.value, ast.Constant) else ""
        yield f"`{field.target.id}`", f"`{kind}{default}`".replace("|", "\\|"), prose(" ".join(str(said).split()))


def _function(one: ast.FunctionDef, heading: str, place: str = "") -> str:
    decorators = {ast.unparse(each) for each in one.decorator_list}
    arguments = ast.unparse(one.args).removeprefix("self, ").removeprefix("cls, ")
    arguments = "" if arguments in ("self", "cls") else arguments
    returned = f" -> {ast.unparse(one.returns)}" if one.returns else ""
    shown = (
        f"{one.name}: {ast.unparse(one.returns)}"
        if "property" in decorators and one.returns
        else (f"{place}{one.name}({arguments}){returned}")
    )
    return f"{heading} {one.name}\n\n```python\n{shown}\n```\n\n{paragraphs(ast.get_docstring(one) or '')}"


def _tree(module: str) -> ast.Module:
    spec = find_spec(module)
    assert spec is not None and spec.origin, module
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


# --- Measures and words -----------------------------------------------------------------------------------------------
def measures(_: str = "") -> str:
    """All figures by which takes and studies are compared."""
    rows = [(escaped(one.title), escaped(one.unit), escaped(one.definition), _BETTER[one.better]) for one in METRICS]
    return table(("figure", "unit", "what it is", "better"), rows)


def terms(_: str = "") -> str:
    """The words of the window's glossary, but knobs and figures, which have tables of their own."""
    found = {one.title: one for one in TERMS}
    for feature in FEATURES:
        if feature.terms:
            module, _, name = feature.terms.partition(":")
            for one in getattr(import_module(module), name):
                found.setdefault(one.title, one)
    ordered = sorted(found.values(), key=lambda one: one.title.casefold())
    return bullets(
        f"**{escaped(one.title)}**{f' ({escaped(one.symbol)})' if one.symbol else ''}: {escaped(one.text)}"
        for one in ordered
    )
