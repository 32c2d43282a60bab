"""Checks of a model's declaration, once when it is found. Torch-free.

A faulty one is left out, with a sentence that says what to change; later readers of declarations need not check them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from paretone.models.base import FLOW, LANGUAGE, MASKED, MelFlow
from paretone.models.declaration import LanguageExports, Model, Voices
from paretone.models.files.releases import Release, RemoteFile
from paretone.plug_ins import fault_of_function
from paretone.reading import shown
from paretone.sampling.options import DEMASKING_OPTIONS
from paretone.setting.knobs import Knob, Values, checked
from paretone.setting.plan import attempted, described, kind_of

FAMILIES = (FLOW, LANGUAGE, MASKED)
LONGEST = 500
"""Most characters of a text: lists show it."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_TEXTS = "title summary family licence loader kind variant weights vocoder layout teacher subject".split()
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(("bundled", "has_separate_vocoder"), bool),
    **dict.fromkeys(("place", "codes_per_token"), int),
    **{"options": tuple, "architectures": tuple, "default_options": Values, "voices": Voices, "programs": dict},
    **{"release": (Release, type(None)), "shipped": (Path, type(None)), "exports": (LanguageExports, type(None))},
    "mel_flow": (MelFlow, type(None)),
}
"""Types of the fields."""


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
    for field, kind in _KINDS.items():
        value = getattr(one, field)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            yield f"{field} must be of {(kind if isinstance(kind, type) else kind[0]).__name__}, not {kind_of(value)}"
        if isinstance(value, str) and len(value) > LONGEST:
            yield f"{field} is longer than {LONGEST} characters"
    for field in ("title", "summary", "licence"):
        if not getattr(one, field).strip():
            yield f"{field} is empty"
    if one.family not in FAMILIES:
        yield f"family is {shown(one.family)}, but must be one of {', '.join(FAMILIES)}"
    named = {field: getattr(one, field) for field in ("loader", "teacher", "subject")}
    for field, name in (named | {"exports.source": one.exports.source if one.exports else ""}).items():
        if (name or field == "loader") and not (isinstance(name, str) and _OBJECT.fullmatch(name)):
            yield f"{field} must be 'package.module:name', not {shown(name)}"
    functions = [("recognised", one.recognised, 1), ("without_effect", one.without_effect, 2)]
    functions += [("voices.named", one.voices.named, 1)] if one.voices.named is not None else []
    for field, function, arguments in functions:
        if reason := fault_of_function(field, function, arguments):
            yield reason
    if not callable(getattr(one.guidance, "strengths", None)):
        yield f"guidance must be one of paretone.sampling.guidance, not {kind_of(one.guidance)}"
    if not all(isinstance(knob, Knob) for knob in one.options):
        yield f"options must be a tuple of Number, Switch, Choice and Text, not {shown(one.options)}"
    names = [knob.name for knob in one.options]
    if len(set(names)) < len(names):
        yield "options has a name twice"
    _, error = attempted(checked, one.options, one.options_with(), "default_options")
    if error is not None:
        yield f"its default options cannot be used: {described(error, '')}".rstrip(".")
    of_flow = {"steps", "spacing", "sway", "speed", "cross_fade"}
    needed = {FLOW: of_flow, MASKED: {knob.name for knob in DEMASKING_OPTIONS}}.get(one.family, set())
    if lacking := ", ".join(sorted(needed.difference(names))):
        yield f"options lacks {lacking}, which every {one.family} model has (paretone.sampling.options)"
    if one.release is not None and not all(isinstance(file, RemoteFile) for file in one.release.files):
        yield "release.files must be a tuple of RemoteFile"
