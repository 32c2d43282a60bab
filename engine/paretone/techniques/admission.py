"""Checks of a technique's declaration, once when it is found. Torch-free.

A faulty plug-in is left out as a whole, with a sentence that says what to change; later readers of declarations need
not check them. Parts that run only with a model (``describe``, ``little``, ``lacking``, weights, the functions of study
and exports) are checked for their type at every call; a failure gives the same kind of sentence.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

from paretone.by_name import nearest
from paretone.errors import PlainError, SettingError
from paretone.fields import fault_of_fields, misfit
from paretone.figures.glyphs import DERIVED_SHAPES, HUES, SHAPES
from paretone.models import catalogue
from paretone.models.admission import FAMILIES, OBJECT
from paretone.plug_ins import fault_of_function
from paretone.reading import shortened, shown
from paretone.setting.knobs import Choice, Knob, Number, Text, checked, defaults
from paretone.setting.plan import attempted, described, imported, kind_of, named
from paretone.techniques.base import GROUPS, Paper, Technique, fault_of_slot
from paretone.wording import grouped

FEATURES = ("recording", "compiling")
"""Device features that a technique may need; see :func:`paretone.device.lacking`."""
RESERVED = frozenset(
    "again as by_line card check codebooks compare csv device folder format help json keep_profile manifest model out "
    "profile published quiet repeat repeats rounds seed setting srt strict technique text text_file trace transcript "
    "variant vocoder voice".split()
)
"""Options of commands that also take artefacts as files."""
PROFILE_FIELDS = frozenset({"kind", "schema", "checkpoint", "variant", "setting", "evidence"})
"""Fields of profiles that are not artefacts; see :mod:`paretone.setting.profile`."""
LONGEST_TITLE, LONGEST_TEXT = 100, 2_000
"""Most characters shown of a plug-in's titles and of its other texts."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KNOB = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_OPTION = re.compile(r"[a-z_]+")
_COMMAND = re.compile(r"[a-z][a-z0-9-]*( [a-z][a-z0-9-]*)?")


def fault(found: object, value: str) -> str:
    """The fault in the object that the entry point ``value`` names, as the end of a sentence, or ``""``."""
    if not isinstance(found, Technique) or not isinstance(found.name, str) or not _NAME.fullmatch(found.name):
        return f"{value} is not a Technique with a name of lower-case letters, digits and underscores"
    return next(filter(None, _faults(found)), "")


def _faults(one: Technique) -> Iterator[str]:
    from paretone.measure.metrics import METRICS

    yield fault_of_fields(one)
    for field in ("title", "summary"):
        if not getattr(one, field).strip():
            yield f"{field} is empty"
    if not one.families:
        yield f"families is empty; name one or more of {', '.join(FAMILIES)}"
    for family in one.families:
        if family not in FAMILIES:
            yield f"families has {shown(family)}, but there are {', '.join(FAMILIES)}"
    known = {knob.name for entry in catalogue.models() for knob in entry.options}
    for option in one.options:
        if option not in known:
            yield f"options has {shown(option)}, which no model has{_near(option, known)}"
    if one.slot and (slot := fault_of_slot(one.slot)):
        yield f"slot is {slot}, or ''"
    if one.group and one.group not in GROUPS:
        near = _near(one.group, list(GROUPS))
        yield f"group is {shown(one.group)}{near}; it must be one of {', '.join(GROUPS)}, or ''"
    metrics = [each.name for each in METRICS]
    if one.improves not in metrics:
        yield f"improves is {shown(one.improves)}{_near(one.improves, metrics)}; it must be one of {', '.join(metrics)}"
    if one.needs and one.needs not in FEATURES:
        yield f"needs is {shown(one.needs)}, but must be one of {', '.join(FEATURES)}, or ''"
    mark = one.mark
    if mark is not None and (mark.hue not in HUES or mark.shape not in (*SHAPES, *DERIVED_SHAPES)):
        yield f"mark must be None, for one that follows from the name, not {shown(mark)}"
    yield from _faults_of_knobs(one)
    yield from _faults_of_published(one)
    yield from _faults_of_functions(one)
    yield from _faults_of_preparation(one)
    yield from _faults_of_modules(one)


def _near(word: str, known: Sequence[str] | set[str]) -> str:
    near = nearest(word, known)
    return f" (did you mean {near!r}?)" if near else ""


# --- Knobs ------------------------------------------------------------------------------------------------------------
def _faults_of_knobs(one: Technique) -> Iterator[str]:
    names: set[str] = set()
    for place, knob in enumerate(one.knobs):
        if not _KNOB.fullmatch(str(knob.name)):
            said = "use letters, digits and underscores, a letter first"
            yield f"the name of knob {place + 1} is {shown(knob.name)}; {said}"
        if knob.name in names:
            yield f"two knobs are named {knob.name!r}; rename one"
        if knob.name == "weights" and one.weights is not None:
            yield "the knob 'weights' has the name that chooses among trained weights; rename it"
        names.add(knob.name)
        if reason := _fault_of_knob(knob):
            yield f"knob {knob.name!r}: {reason}"


def _fault_of_knob(knob: Knob) -> str:
    if reason := fault_of_fields(knob):
        return reason
    if not knob.title.strip():
        return "title is empty"
    if isinstance(knob, Number):
        if not knob.minimum <= knob.maximum:
            return f"its minimum {knob.minimum:g} is above its maximum {knob.maximum:g}"
        if not knob.step > 0:
            return f"step must be above 0, not {knob.step:g}"
    if isinstance(knob, Choice):
        if not knob.values:
            return "values is empty"
        if len(set(knob.values)) < len(knob.values):
            return "values has one twice"
        if knob.titles and len(knob.titles) != len(knob.values):
            return f"there are {len(knob.values)} values, so titles must be a tuple of {len(knob.values)}, or ()"
    if isinstance(knob, Text) and knob.longest < 1:
        return f"longest must be at least 1, not {knob.longest}"
    _, error = attempted(knob.check, knob.default)
    if isinstance(error, SettingError):
        return f"its default is not allowed: {error}".rstrip(".")
    return "" if error is None else f"check fails for its default ({described(error, type(knob).__module__)})"


def _faults_of_published(one: Technique) -> Iterator[str]:
    known = [entry.id for entry in catalogue.models()]
    for each in one.published:
        if reason := fault_of_fields(each):
            yield f"published: {reason}"
        _, error = attempted(checked, one.knobs, each.knobs, f"published setting {shown(each.name)}")
        if error is not None:
            yield f"published: {error}".rstrip(".")
        if not {*known}.issuperset(each.models):
            yield f"published: {shown(each.name)} must have models of the catalogue ({', '.join(known)})"


# --- Functions --------------------------------------------------------------------------------------------------------
def _faults_of_functions(one: Technique) -> Iterator[str]:
    for field, arguments in (("resolve", 3), ("describe", 1), ("little", 1), ("lacking", 1)):
        yield fault_of_function(field, getattr(one, field), arguments)
    if one.idle is not None:
        yield fault_of_function("idle", one.idle, 2)
    if reason := _fault_of_call(one.describe, (defaults(one.knobs),), str):
        yield f"describe {reason} with the knobs' defaults"
    for family in FAMILIES:
        if reason := _fault_of_call(one.lacking, (family,), str | None):
            yield f"lacking {reason} for {family!r}"


def _fault_of_call(function: Callable[..., Any], given: tuple[object, ...], kind: Any) -> str:
    """Why ``function`` does not give a ``kind``, as in ``gave None in place of a text``."""
    found, error = attempted(function, *given)
    if error is not None:
        return f"failed ({described(error, function.__module__ or '')})"
    if isinstance(found, kind):
        return ""
    return f"gave {kind_of(found)} in place of a text{' or None' if isinstance(None, kind) else ''}"


# --- Preparation and modules ------------------------------------------------------------------------------------------
def _faults_of_preparation(one: Technique) -> Iterator[str]:
    if one.artefact is not None:
        if not _NAME.fullmatch(one.artefact.key):
            yield f"artefact.key must be of lower-case letters, digits and underscores, not {shown(one.artefact.key)}"
        if one.artefact.key in PROFILE_FIELDS:
            yield f"artefact.key is {one.artefact.key!r}, which is another field of profiles; rename it"
    file = one.artefact_file
    if file is not None:
        if not _OPTION.fullmatch(file.option):
            yield f"artefact_file.option must be of lower-case letters and underscores, not {shown(file.option)}"
        knobs = {knob.name for knob in one.knobs}
        if not knobs.issuperset(file.knobs):
            yield f"artefact_file.knobs must be names of its knobs, not {shown(file.knobs)}"
        options = {knob.name for entry in catalogue.models() for knob in entry.options}
        for field, names in (("option", (file.option,)), ("knobs", file.knobs)):
            for name in names:
                if name in RESERVED | options:
                    yield f"artefact_file.{field} has {name!r}, which is an option of commands already; rename it"
        yield _fault_of_object("artefact_file.use", file.use)
    for job in one.jobs:
        for field in ("request", "run", "form"):
            if job.form or field != "form":
                yield _fault_of_object(f"{field} of the job {shown(job.name)}", getattr(job, field))


def _fault_of_object(field: str, value: object) -> str:
    named = isinstance(value, str) and OBJECT.fullmatch(value)
    return "" if named else f"{field} must be 'package.module:name', not {shown(value)}"


def _faults_of_modules(one: Technique) -> Iterator[str]:
    """Import the torch-free modules; of benches, check only that they exist."""
    for name, module in one.benches:
        if reason := _fault_of_bench(name, module):
            yield f"benches: {reason}"
    # Ours are imported on use; tests check them.
    if one.resolve.__module__.partition(".")[0] == "paretone":
        return
    for job in filter(lambda each: each.form, one.jobs):
        found = _imported(job.form)
        if reason := found if isinstance(found, str) else _fault_of_form(found, one):
            yield f"form of the job {shown(job.name)}: {reason}"
    for field in ("commands", "views", "study", "exports"):
        value = getattr(one, field)
        for name in filter(None, (value,) if isinstance(value, str) else value):
            found = _imported(name)
            if reason := found if isinstance(found, str) else _FAULTS[field](found, name):
                yield f"{field}: {reason}"


def _fault_of_bench(name: str, module: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        return f"the name {shown(name)} must be of lower-case letters, digits and hyphens"
    if not _MODULE.fullmatch(module):
        return f"{shown(module)} is not the name of a module"
    if module.startswith("paretone."):
        return ""

    def read() -> bool:
        spec = find_spec(module)
        source = getattr(spec.loader, "get_source", lambda name: "")(module) if spec else None
        ast.parse(source or "")
        return spec is not None

    there, error = attempted(read)
    if error is not None:
        return f"{module} cannot be read ({described(error, module)})"
    return "" if there else f"there is no module {module}"


def _imported(name: str) -> Any:
    """Import a module or, for ``"package.module:name"``, an object; on failure return the reason as a text."""
    if not _MODULE.fullmatch(name) and not OBJECT.fullmatch(name):
        return f"{shown(name)} is not the name of a module"
    found, error = attempted(named, name)
    return found if error is None else f"{name} cannot be imported ({described(error, name.partition(':')[0])})"


def _fault_of_command(found: Any, called: str) -> str:
    # Imported by name: commands and forms import the registry.
    if isinstance(found, imported("paretone.commands.command:Command")):  # As a module.
        found = SimpleNamespace(NAME=found.name, SUMMARY=found.summary, declare=found.declare, run=found.run)
    for field in ("NAME", "SUMMARY"):
        if not isinstance(getattr(found, field, None), str):
            return f"{called} has no {field}, a text"
        if len(getattr(found, field)) > LONGEST_TEXT:
            return f"{field} of {called} is longer than {grouped(LONGEST_TEXT)} characters"
    if not _COMMAND.fullmatch(found.NAME):
        return (
            f"the command's NAME {shown(found.NAME)} must be one or two words of lower-case letters, digits and hyphens"
        )
    for field, arguments in (("declare", 1), ("run", 2)):
        if reason := fault_of_function(field, getattr(found, field, None), arguments):
            return f"{called}: {reason}"
    parser = argparse.ArgumentParser(add_help=False)
    for flag in ("--json", "--quiet", "--help"):
        parser.add_argument(flag, action="store_true")
    _, error = attempted(found.declare, parser)
    return "" if error is None else f"declare of {called} failed ({described(error, called.partition(':')[0])})"


def _fault_of_view(found: Any, called: str) -> str:
    from paretone.views.view import View

    view = found if isinstance(found, View) else getattr(found, "VIEW", None)
    if not isinstance(view, View):
        return f"{called} must have a VIEW, a View, not {kind_of(view)}"
    if reason := fault_of_fields(view):
        return f"the view of {called}: {reason}"
    texts = view.name, view.title, view.question, view.source
    if not all(texts) or not re.fullmatch(r"[a-z][a-z0-9-]*", view.name):
        return f"the view of {called} needs title, question, source, and a name of lower-case letters"
    if max(map(len, texts)) > LONGEST_TEXT:
        return f"a text of the view of {called} is longer than {grouped(LONGEST_TEXT)} characters"
    if not set(view.families) <= set(FAMILIES):
        return f"families of the view {view.name!r} must be some of {', '.join(FAMILIES)}"
    knobs, error = attempted(view.knobs, 12)
    if error is not None:
        return f"knobs of the view {view.name!r} failed ({described(error, called.partition(':')[0])})"
    if not isinstance(knobs, tuple | list) or not all(isinstance(one, Knob) for one in knobs):
        return f"knobs of the view {view.name!r} gave {kind_of(knobs)} in place of a tuple of knobs"
    return next(filter(None, map(_fault_of_knob, knobs)), "")


def _fault_of_form(found: Any, one: Technique) -> str:
    if not isinstance(found, imported("paretone.training.forms:TrainingForm")):
        return f"it must be a TrainingForm, not {kind_of(found)}"
    if reason := fault_of_fields(found):
        return reason
    if found.name != one.name:
        return f"its name must be that of the technique, {one.name!r}, not {shown(found.name)}"
    for field in ("title", "intro", "progress"):
        if len(getattr(found, field)) > LONGEST_TEXT:
            return f"its {field} must have up to {grouped(LONGEST_TEXT)} characters"
    if not found.families or not set(found.families) <= set(FAMILIES):
        return f"its families must be a tuple of {', '.join(FAMILIES)}"
    if not 1 <= len(found.found) <= 3:
        return "its found must be one to three Figures"
    return next(filter(None, map(_fault_of_knob, found.knobs)), "")


def _fault_of_hooks(found: ModuleType, called: str, **hooks: int) -> str:
    """Fault in the ``hooks`` of a module, the numbers of their arguments by name."""
    for field, arguments in hooks.items():
        if hasattr(found, field) and (reason := fault_of_function(field, getattr(found, field), arguments)):
            return f"{called}: {reason}"
    return ""


_FAULTS: dict[str, Callable[[Any, str], str]] = {
    "commands": _fault_of_command,
    "views": _fault_of_view,
    "study": partial(_fault_of_hooks, settings=3, preparer=0, files=1, finished=2),
    "exports": partial(_fault_of_hooks, carried=3, weights=3),
}


# --- At use -----------------------------------------------------------------------------------------------------------
def held(one: Technique, plug_in: str, report: Callable[[str], None]) -> Technique:
    """Wrap ``one`` of ``plug_in``: its results are checked, its texts shortened, its failures sent to ``report``."""

    def clipped(field: str, text: str, longest: int = LONGEST_TEXT) -> str:
        if len(text) > longest:
            report(
                f"{shortened(one.title, LONGEST_TITLE)}: {field} has {grouped(len(text))} characters, of which "
                f"{grouped(longest)} are shown; shorten it in {plug_in}."
            )
        return shortened(text, longest)

    def of_knob(knob: Knob) -> Knob:
        title = clipped(f"title of the knob {knob.name!r}", knob.title, LONGEST_TITLE)
        meaning = clipped(f"meaning of the knob {knob.name!r}", knob.meaning)
        # Others stay as they are: a plug-in's own kind of knob may not take these arguments.
        return knob if (title, meaning) == (knob.title, knob.meaning) else replace(knob, title=title, meaning=meaning)

    def watched(field: str, function: Callable[..., object], accepted: Callable[[object], bool], wanted: str) -> Any:
        """``function``; a failure is reported, and said in place of a text, or an empty tuple in place of others."""

        def called(*given: Any) -> Any:
            found, error = attempted(function, *given)
            if error is None and accepted(found):
                return shortened(found, LONGEST_TEXT) if isinstance(found, str) else found
            if error is None:
                reason = f"it gave {kind_of(found)} in place of a {wanted}"
            else:
                plain = isinstance(error, PlainError)
                reason = shortened(str(error)) if plain else described(error, function.__module__ or "")
            sentence = f"{one.title}: {field} failed ({reason}); do without it, or mend {plug_in}."
            report(sentence)
            return sentence if wanted == "text" else ()

        return called

    weights = one.weights
    if weights is not None:
        each = {name: getattr(weights, name) for name in ("all_of", "fitting")}
        right = lambda found: not misfit("", found, Sequence)  # noqa: E731
        each = {name: watched(f"weights.{name}", function, right, "tuple") for name, function in each.items()}
        weights = replace(weights, **each)
    one = replace(
        one,
        title=clipped("title", one.title, LONGEST_TITLE),
        summary=clipped("summary", one.summary),
        benefit=clipped("benefit", one.benefit),
        paper=Paper(**{name: clipped(f"{name} of the paper", text) for name, text in vars(one.paper).items()}),
        knobs=tuple(map(of_knob, one.knobs)),
    )
    return replace(
        one,
        describe=watched("describe", one.describe, lambda found: isinstance(found, str), "text"),
        little=watched("little", one.little, lambda found: isinstance(found, str), "text"),
        lacking=watched("lacking", one.lacking, lambda found: isinstance(found, str | None), "text"),
        weights=weights,
    )
