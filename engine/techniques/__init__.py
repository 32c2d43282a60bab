"""The techniques that exist. Adding one means adding its file or folder and naming it here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.errors import SettingError
from engine.setting.knobs import Knob, Values, checked
from engine.setting.setting import Difference, Engaged, Setting
from engine.techniques import (
    blockwise,
    compilation,
    ditreducio,
    error_curve,
    fewer_steps,
    first_block,
    frozen_prefix,
    graphs,
    guidance_free,
    guidance_interval,
    guidance_stride,
    layer_reuse,
    precision,
    sentencewise,
    spade,
    speculative,
    steps,
)
from engine.techniques.base import Technique

if TYPE_CHECKING:
    from engine.models.base import ModelInfo

TECHNIQUES: tuple[Technique, ...] = (
    ditreducio.TECHNIQUE,
    guidance_free.TECHNIQUE,
    steps.TECHNIQUE,
    precision.TECHNIQUE,
    graphs.TECHNIQUE,
    compilation.TECHNIQUE,
    error_curve.TECHNIQUE,
    first_block.TECHNIQUE,
    guidance_interval.TECHNIQUE,
    blockwise.TECHNIQUE,
    sentencewise.TECHNIQUE,
    fewer_steps.TECHNIQUE,
    guidance_stride.TECHNIQUE,
    frozen_prefix.TECHNIQUE,
    layer_reuse.TECHNIQUE,
    speculative.TECHNIQUE,
    spade.TECHNIQUE,
)


def find(name: str) -> Technique | None:
    """The technique called ``name``, if there is one: settings that were kept may name one of another version."""
    return next((one for one in TECHNIQUES if one.name == name), None)


def technique(name: str) -> Technique:
    """The technique called ``name``. Raises :class:`SettingError` that lists the known ones."""
    found = find(name)
    if found is None:
        known = ", ".join(one.name for one in TECHNIQUES)
        raise SettingError(f"There is no technique named {name!r}; known techniques: {known}.")
    return found


def applying_to(family: str, options: Iterable[Knob]) -> tuple[Technique, ...]:
    """The techniques for a model of ``family`` that has these ``options``."""
    names = {knob.name for knob in options}
    return tuple(one for one in TECHNIQUES if family in one.families and names.issuperset(one.options))


def wording(difference: Difference) -> str:
    """What a difference is of, in words for people: "DiTReducio, Threshold δ"."""
    name, _, knob = difference.what.partition(".")
    found = find(name) if difference.technique else None
    if found is None or not knob:
        return found.title if found else difference.what
    artefact = {"calibration": "strategy table", "training": "weights"}.get(found.prepared_by, knob)
    label = next((one.label for one in found.knobs if one.name == knob), artefact)
    return f"{found.title}, {label}"


def reshaped(setting: Setting, options: Values) -> Values:
    """``options``, the complete ones of a model under ``setting``, as the setting's techniques change them.

    Raises :class:`SettingError` for knobs that a technique has not, or values out of range.
    """
    for one in setting.techniques:
        options = technique(one.technique).reshape(options, knobs_of(one))
    return options


def in_force(info: ModelInfo, setting: Setting, options: Values) -> Values:
    """``options``, the complete ones of the loaded model, as they are with the techniques of ``setting``.

    Raises :class:`SettingError` where that is not for the model, or where techniques cannot be used together.
    """
    found = checked(info.knobs, reshaped(setting, options), info.title)
    reason = conflict(setting)
    if reason:
        raise SettingError(reason)
    return found


def require_family(info: ModelInfo, setting: Setting) -> None:
    """Raise :class:`SettingError` where a technique of ``setting`` is for models of other families."""
    for entry in setting.techniques:
        declared = technique(entry.technique)
        if info.family not in declared.families:
            raise SettingError(f"{declared.title} is not for models like {info.title}; do without it.")


def remarks(setting: Setting, options: Values) -> tuple[str, ...]:
    """What ``setting``'s techniques have to say on a take under ``options``, those in force."""
    return tuple(
        remark
        for entry in setting.techniques
        for remark in technique(entry.technique).remarks(options, knobs_of(entry))
    )


def knobs_of(entry: Engaged) -> Values:
    """All knob values of an engaged technique. Raises :class:`SettingError` for unknown knobs and for values out of
    range."""
    declared = technique(entry.technique)
    return checked(declared.knobs, entry.knobs, declared.title)


def conflict(setting: Setting) -> str | None:
    """The first reason why ``setting``'s techniques cannot engage together, as a sentence, or ``None``."""
    in_force = replace(setting, options=reshaped(setting, setting.options))
    reasons = (technique(one.technique).conflict(in_force) for one in setting.techniques)
    return next(filter(None, reasons), None)
