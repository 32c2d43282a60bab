"""Techniques in arguments, with trained weights and with artefacts from files."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from typing import Any

from paretone.errors import SettingError
from paretone.models.base import ModelInfo, SpeechModel
from paretone.setting.knobs import NO_VALUES, Knob, Number, Switch
from paretone.setting.plan import imported
from paretone.setting.setting import Published, Setting, UsedTechnique
from paretone.techniques import require_family, technique, techniques
from paretone.techniques.base import ArtefactFile, Technique
from paretone.techniques.trained import used_technique, with_named_weights

_COMMA = re.compile(r",\s*(?=\w+\s*=)")
"""A comma before a knob, as in other programs. Here commas separate the options of a compared side."""


def typed_technique(text: str, published: Mapping[str, Published] = {}) -> UsedTechnique:
    """Technique from ``NAME`` or ``NAME:KNOB=VALUE;KNOB=VALUE``; missing knobs are its ``published`` setting's or the
    defaults. ``weights=…`` and knobs missing with it wait for :func:`with_weights`. Raises :class:`SettingError`."""
    name, _, parts = text.partition(":")
    declared = technique(name.strip())
    known = {knob.name: knob for knob in declared.knobs}
    given = {}
    for part in filter(None, parts.split(";")):
        knob, found, value = (one.strip() for one in part.partition("="))
        if not found:
            raise SettingError(f"{part!r} is not a knob of {declared.title}; write KNOB=VALUE, separated by ';'.")
        if knob in known and _COMMA.search(value):
            raise SettingError(
                f"Separate knobs of {declared.title} by ';', not ',', and put quotes around all: "
                f"'{_COMMA.sub(';', text)}'."
            )
        if knob in given:
            raise SettingError(f"{knob!r} of {declared.title} is given twice; give each knob once.")
        given[knob] = typed(known[knob], value) if knob in known else value
    own = published[declared.name].knobs if declared.name in published else NO_VALUES
    return used_technique(declared, {**own, **given})


def typed_techniques(texts: Iterable[str], published: Mapping[str, Published] = {}) -> tuple[UsedTechnique, ...]:
    """:func:`typed_technique` for several texts. Raises :class:`SettingError`, also for duplicates."""
    found: dict[str, UsedTechnique] = {}
    for one in (typed_technique(text, published) for text in texts):
        if one.technique in found:
            raise SettingError(f"{technique(one.technique).title} is given twice; give each technique once.")
        found[one.technique] = one
    return tuple(found.values())


def with_weights(setting: Setting, info: ModelInfo) -> Setting:
    """``setting`` with the weights of the loaded model that it names. Raises :class:`SettingError`."""
    require_family(info, setting)
    return with_named_weights(setting, info)


def typed(knob: Knob, text: str) -> bool | int | float | str:
    """A knob's value from typed text. Raises :class:`SettingError`."""
    match knob:
        case Number():
            return number(text, knob.title)
        case Switch():
            if text not in ("on", "off", "true", "false"):
                raise SettingError(f"{knob.title} must be on or off, not {text!r}.")
            return text in ("on", "true")
        case _:
            return text


def number(text: str, title: str) -> int | float:
    """A number from typed text. Raises :class:`SettingError`."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise SettingError(f"{title} must be a number, not {text!r}.")


# --- Artefacts from files ---------------------------------------------------------------------------------------------
def from_files() -> tuple[tuple[Technique, ArtefactFile], ...]:
    return tuple((one, one.artefact_file) for one in techniques() if one.artefact_file is not None)


def files_given(options: argparse.Namespace) -> list[tuple[str, str]]:
    found = ((file.option, getattr(options, file.option)) for _, file in from_files())
    return [(option, path) for option, path in found if path]


def with_file(
    setting: Setting, model: SpeechModel, option: str, path: str, knobs: Mapping[str, object] = NO_VALUES
) -> tuple[Setting, tuple[Any, ...]]:
    """``setting`` with the technique of the artefact in the file ``path``, given by ``option``, and that artefact.
    ``knobs``: the user's. Raises :class:`ProfileError` if it is unusable here."""
    (file,) = (file for _, file in from_files() if file.option == option)
    return imported(file.use)(setting, model, path, knobs)
