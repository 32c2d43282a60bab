"""Checks of a model's declaration, once when it is found. Torch-free.

A faulty one is left out, with a sentence that says what to change; later readers of declarations need not check them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from paretone.fields import fault_of_fields
from paretone.models.base import FLOW, LANGUAGE, MASKED
from paretone.models.declaration import Model
from paretone.plug_ins import fault_of_function
from paretone.reading import shown
from paretone.sampling.options import DEMASKING_OPTIONS
from paretone.setting.knobs import checked
from paretone.setting.plan import attempted, described

FAMILIES = (FLOW, LANGUAGE, MASKED)
LONGEST = 500
"""Most characters of a text: lists show it."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def fault(found: object, value: str) -> str:
    """The fault in the object that the entry point ``value`` names, as the end of a sentence, or ``""``."""
    declared = found if isinstance(found, tuple) and found else (found,)
    for one in declared:
        if not isinstance(one, Model) or not isinstance(one.id, str) or not _ID.fullmatch(one.id):
            return f"{value} is not a Model with an id of letters, digits, dots, hyphens and underscores"
        if reason := next(filter(None, _faults(one)), ""):
            return f"{one.id}: {reason}" if len(declared) > 1 else reason
    return ""


def _faults(one: Model) -> Iterator[str]:
    yield fault_of_fields(one)
    for field, value in vars(one).items():
        if isinstance(value, str) and len(value) > LONGEST:
            yield f"{field} is longer than {LONGEST} characters"
    for field in ("title", "summary", "licence"):
        if not getattr(one, field).strip():
            yield f"{field} is empty"
    if one.family not in FAMILIES:
        yield f"family is {shown(one.family)}, but must be one of {', '.join(FAMILIES)}"
    named = {field: getattr(one, field) for field in ("loader", "teacher", "subject")}
    for field, name in (named | {"exports.source": one.exports.source if one.exports else ""}).items():
        if (name or field == "loader") and not OBJECT.fullmatch(name):
            yield f"{field} must be 'package.module:name', not {shown(name)}"
    functions = [("recognised", one.recognised, 1), ("without_effect", one.without_effect, 2)]
    functions += [("voices.named", one.voices.named, 1)] if one.voices.named is not None else []
    for field, function, arguments in functions:
        yield fault_of_function(field, function, arguments)
    defaults = one.options_with()
    _, error = attempted(lambda: (one.guidance.branches(defaults), one.guidance.off(defaults)))
    if error is not None:
        yield f"guidance does not fit its options ({described(error, one.loader)})"
    names = [knob.name for knob in one.options]
    if len(set(names)) < len(names):
        yield "options has a name twice"
    _, error = attempted(checked, one.options, defaults, "default_options")
    if error is not None:
        yield f"its default options cannot be used: {described(error, '')}".rstrip(".")
    of_flow = {"steps", "spacing", "sway", "speed", "cross_fade"}
    needed = {FLOW: of_flow, MASKED: {knob.name for knob in DEMASKING_OPTIONS}}.get(one.family, set())
    if lacking := ", ".join(sorted(needed.difference(names))):
        yield f"options lacks {lacking}, which every {one.family} model has (paretone.sampling.options)"
