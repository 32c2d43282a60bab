"""Trained weights that techniques use: which of a loaded model's fit the knobs, and which someone named.
Torch-free."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paretone.errors import SettingError
from paretone.models.base import ModelInfo, TrainedWeights
from paretone.reading import shown
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import UsedTechnique
from paretone.techniques.registry import technique

TELLING = 4
"""Digits of a fingerprint that are enough to name weights by: fewer may be a number that was meant for a knob."""
SHOWN = 8
"""Digits of a fingerprint that are shown."""


def fitting(info: ModelInfo, name: str, knobs: Values) -> tuple[TrainedWeights, ...]:
    """Those of the loaded model that the technique ``name`` can run under ``knobs``: of them a setting that names none
    takes the first. Techniques without weights of their own have none."""
    weights = technique(name).weights
    return tuple(weights.fitting(info, knobs)) if weights else ()


def named(info: ModelInfo, entry: UsedTechnique) -> UsedTechnique:
    """``entry``, whose artefact is what someone typed, with the fingerprint of those of the loaded model's weights that
    this names: by their file, with or without its folder and its ending, or by the beginning of their fingerprint.
    Knobs that ``entry`` leaves open are as these weights want them.

    Raises :class:`SettingError` that lists what there is, or says which knob the weights do not go with.
    """
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
