"""The techniques, how they are found, and how a setting's techniques act together. Torch-free.

Each lives in its own file or folder. Adding one means adding that and naming it in ``pyproject.toml``, in the
entry-point group ``paretone.techniques``; a package of a researcher's own does the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.errors import SettingError
from engine.setting.knobs import Values, checked
from engine.setting.setting import Difference, Engaged, Setting
from engine.techniques.base import Technique
from engine.techniques.registry import applying_to, find, problems, technique, techniques

if TYPE_CHECKING:
    from engine.models.base import ModelInfo

__all__ = ["Technique", "applying_to", "find", "problems", "technique", "techniques"]


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
