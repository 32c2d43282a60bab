"""The techniques that exist. Adding one means adding its file or folder and naming it here."""

from __future__ import annotations

from dataclasses import replace

from engine.errors import SettingError
from engine.knobs import Values, checked
from engine.setting import Setting
from engine.techniques import ditreducio
from engine.techniques.base import Technique

TECHNIQUES: tuple[Technique, ...] = (ditreducio.TECHNIQUE,)


def technique(name: str) -> Technique:
    """The technique called ``name``. Raises :class:`SettingError` that lists the known ones."""
    for one in TECHNIQUES:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in TECHNIQUES)
    raise SettingError(f"There is no technique named {name!r}; known techniques: {known}.")


def wording(what: str) -> str:
    """What :class:`engine.setting.Difference` calls ``what``, in words for people: "DiTReducio, Threshold δ"."""
    name, _, knob = what.partition(".")
    found = next((one for one in TECHNIQUES if one.name == name), None)
    if found is None or not knob:
        return found.title if found else what
    label = next((one.label for one in found.knobs if one.name == knob), "strategy table")
    return f"{found.title}, {label}"


def reshaped(setting: Setting, options: Values) -> Values:
    """``options``, the complete ones of a model under ``setting``, as the setting's techniques change them.

    Raises :class:`SettingError` for knobs that a technique has not, or values out of range.
    """
    for one in setting.techniques:
        declared = technique(one.technique)
        options = declared.reshape(options, checked(declared.knobs, one.knobs, declared.title))
    return options


def conflict(setting: Setting) -> str | None:
    """The first reason why ``setting``'s techniques cannot engage together, as a sentence, or ``None``."""
    in_force = replace(setting, options=reshaped(setting, setting.options))
    reasons = (technique(one.technique).conflict(in_force) for one in setting.techniques)
    return next(filter(None, reasons), None)
