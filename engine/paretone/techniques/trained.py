"""Trained weights for techniques: those of a loaded model that fit the knobs, and those named by a user. Torch-free."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from paretone.errors import SettingError
from paretone.models.base import ModelInfo, TrainedWeights
from paretone.paths import in_own_place
from paretone.reading import shown
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.base import Technique
from paretone.techniques.registry import technique

WEIGHTS = "weights"
"""Pseudo-knob that names trained weights."""
TELLING = 4
"""Least number of digits of a fingerprint that names weights: fewer may be a number meant for a knob."""
SHOWN = 8
"""Number of displayed digits of a fingerprint."""


def used_technique(declared: Technique, given: dict[str, Any]) -> UsedTechnique:
    """Technique with the knobs ``given``; ``weights`` among them names trained weights, and then knobs that are missing
    wait for :func:`with_named_weights`. Raises :class:`SettingError`."""
    trained = WEIGHTS in given and declared.prepared_by == "training"
    weights = str(given.pop(WEIGHTS)) if trained else ""
    if trained and not weights:
        raise SettingError(f"{WEIGHTS}= names no weights; write their file's name, or the beginning of its SHA-256.")
    knobs = checked(declared.knobs, given, declared.title)
    return UsedTechnique(declared.name, Values({name: knobs[name] for name in given}) if trained else knobs, weights)


def fitting(info: ModelInfo, name: str, knobs: Values) -> tuple[TrainedWeights, ...]:
    """Weights of the loaded model that the technique ``name`` can run under ``knobs``; settings without a fingerprint
    use the first. Empty for techniques without weights."""
    weights = technique(name).weights
    return tuple(weights.fitting(info, knobs)) if weights else ()


def named(info: ModelInfo, entry: UsedTechnique) -> UsedTechnique:
    """Replace the typed artefact of ``entry`` by the fingerprint of the loaded model's weights that it names: by file,
    with or without folder and suffix, or by the first digits of the fingerprint. Open knobs of ``entry`` are set to
    those of the weights. Raises :class:`SettingError`, which lists available weights, or the knob that does not fit."""
    declared = technique(entry.technique)
    weights = declared.weights
    there = tuple(weights.all_of(info)) if weights else ()
    if weights is None or not there:
        error = SettingError(f"{info.title} has no weights for {declared.title} yet; train some first.")
        error.command = "paretone train --help"
        raise error
    typed = Path(entry.artefact)
    named = [(one, Path(one.path)) for one in there]
    found = [one for one, path in named if str(typed) in (path.name, path.stem) or typed.resolve() == path.resolve()]
    # A name that was shipped means what was shipped.
    found = [one for one in found if not in_own_place(one.path, info.id)] or found
    if not found and len(entry.artefact) >= TELLING:
        found = [one for one in there if one.fingerprint.startswith(entry.artefact.lower())]
    if len({one.fingerprint for one in found}) != 1:
        several = "several weights" if found else "no weights"
        listed = ", ".join(f"{Path(one.path).stem} ({one.fingerprint[:SHOWN]})" for one in found or there)
        raise SettingError(
            f"{info.title} has {several} named {shown(entry.artefact)} for {declared.title}; there are {listed}. Name "
            "one by its file or the beginning of its fingerprint."
        )
    one, own = found[0], weights.knobs_of(found[0])
    knobs = checked(declared.knobs, {**own, **entry.knobs}, declared.title)
    if one not in weights.fitting(info, knobs):
        against = {name: entry.knobs[name] for name in own if entry.knobs.get(name, own[name]) != own[name]}
        listed = " and ".join(f"{name}={value}" for name, value in against.items())
        raise SettingError(f"{Path(one.path).stem} does not fit {listed}; omit that, or name other weights.")
    return replace(entry, knobs=knobs, artefact=one.fingerprint)


def with_named_weights(setting: Setting, info: ModelInfo) -> Setting:
    """``setting`` with the trained weights that it names, by fingerprint. Raises :class:`SettingError`."""
    for one in setting.techniques:
        if one.artefact and technique(one.technique).weights:
            setting = setting.with_technique(named(info, one))
    return setting
