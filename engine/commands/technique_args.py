"""Engaging techniques as arguments name them, and DiTReducio with a strategy table from a file, Paretone's form or the
official one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from engine.errors import ProfileError, SettingError
from engine.models.base import ModelInfo, SpeechModel, flow_model
from engine.setting.knobs import Knob, Number, Switch, Values, checked
from engine.setting.setting import Engaged, Setting
from engine.techniques import ditreducio, require_family, technique
from engine.techniques.ditreducio.table import StrategyTable
from engine.techniques.trained import named

DITREDUCIO = ditreducio.TECHNIQUE.name
WEIGHTS = "weights"
"""Typed beside the knobs of techniques with trained weights, names these."""
_COMMA = re.compile(r",\s*(?=\w+\s*=)")
"""Before a knob that was typed as in other programs. Here commas stand between the options of a compared side."""


def engaged(text: str) -> Engaged:
    """A technique from what someone typed, ``NAME`` or ``NAME:KNOB=VALUE;KNOB=VALUE``; knobs that are left out have
    their defaults. Where ``weights=…`` is among them, these are for :func:`with_weights` to find, and knobs that are
    left out stay open until then. Raises :class:`SettingError`."""
    name, _, parts = text.partition(":")
    declared = technique(name.strip())
    known = {knob.name: knob for knob in declared.knobs}
    given = {}
    for part in filter(None, parts.split(";")):
        knob, found, value = (one.strip() for one in part.partition("="))
        if not found:
            raise SettingError(f"{part!r} is no knob of {declared.title}; write KNOB=VALUE, several with ';' between.")
        if knob in known and _COMMA.search(value):
            raise SettingError(
                f"Several knobs of {declared.title} have ';' between them, not ',', and quotes around all: "
                f"'{_COMMA.sub(';', text)}'."
            )
        given[knob] = typed(known[knob], value) if knob in known else value
    trained = WEIGHTS in given and declared.prepared_by == "training"
    weights = given.pop(WEIGHTS) if trained else ""
    if trained and not weights:
        raise SettingError(f"{WEIGHTS}= names no weights; write their file's name, or the beginning of its SHA-256.")
    knobs = checked(declared.knobs, given, declared.title)
    return Engaged(declared.name, Values({name: knobs[name] for name in given}) if trained else knobs, weights)


def with_weights(setting: Setting, info: ModelInfo) -> Setting:
    """``setting``, whose techniques :func:`engaged` has made, with those of the loaded model's weights that they name.
    Raises :class:`SettingError`."""
    require_family(info, setting)
    for one in setting.techniques:
        if one.artefact:
            setting = setting.with_technique(named(info, one))
    return setting


def typed(knob: Knob, text: str) -> bool | int | float | str:
    """A knob's value from the text that someone typed. Raises :class:`SettingError`."""
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
    """A number from the text that someone typed. Raises :class:`SettingError`."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise SettingError(f"{title} must be a number, not {text!r}.")


def with_table(
    setting: Setting, model: SpeechModel, path: str, knobs: Mapping[str, object]
) -> tuple[Setting, tuple[StrategyTable, ...]]:
    """``setting`` with DiTReducio engaged under the table in ``path``, and that table.

    ``knobs`` are those that the user gave. Raises :class:`ProfileError` when the table cannot be used here.
    """
    compatibility = flow_model(model, "A strategy table").compatibility(setting)
    data = read(path)
    values = checked(ditreducio.TECHNIQUE.knobs, knobs, ditreducio.TECHNIQUE.title)
    if isinstance(data, dict) and "actions" in data:
        table = StrategyTable.from_json(data, path)
        if "branch_skip" in knobs and knobs["branch_skip"] != table.branch_skip:
            raise ProfileError(f"{path} was calibrated with branch skipping of {table.branch_skip!r}; leave that out.")
        if "temporal" in knobs and knobs["temporal"] != table.temporal:
            raise ProfileError(f"{path} was calibrated with skipped outputs of {table.temporal!r}; leave that out.")
        values = values.replace(branch_skip=table.branch_skip, temporal=table.temporal)
    else:
        table = StrategyTable.from_official(data, compatibility, str(values["branch_skip"]), path)
        values = values.replace(temporal=table.temporal)
    mismatch = table.compatibility.mismatch(compatibility)
    if mismatch:
        raise ProfileError(f"The strategy table {path} cannot be used here: {mismatch}.")
    if table.layers != model.info.layers:
        raise ProfileError(
            f"The strategy table {path} has {table.layers} layers, but {model.info.title} has {model.info.layers}."
        )
    return setting.with_technique(Engaged(DITREDUCIO, values, table.fingerprint)), (table,)


def read(path: str) -> object:
    """What stands in a strategy table's file. Raises :class:`ProfileError`."""
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ProfileError(f"The strategy table {path} could not be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"{path} is no strategy table: it is no JSON ({error}).") from error
