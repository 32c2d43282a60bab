"""The forms in which a profile runs without Paretone, and which profiles each of them can carry. Torch-free.

What a technique brings is in the module that :attr:`engine.techniques.base.Technique.exports` names, with any of:

- ``why_not(target, entry, artefact)``: why the target so called cannot carry ``entry``, a sentence or ``""``; a
  technique without it cannot be carried anywhere;
- ``TARGETS``: forms of the technique's own;
- ``described(artefact)``: fields of the file that :mod:`engine.export.paretone_profile` reads, and
  ``readme(artefact)``, what to say of them;
- ``weights(profile, checkpoint, check)``: the weights that the profile runs with in place of the checkpoint's, an
  :class:`engine.export.exported_weights.ExportedWeights`, or ``None``;
- ``KIND`` and ``SETTINGS_FILE``: which weights of language models are the technique's, and where settings for them go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from engine.errors import SettingError
from engine.models.catalogue import F5, entry
from engine.setting.profile import Profile
from engine.techniques import Technique, technique, techniques


@dataclass(frozen=True)
class Target:
    """One form."""

    name: str
    title: str
    summary: str
    """Contents of the written folder."""
    why_not: Callable[[Profile, bool], str]
    """Why a profile cannot be exported so, as a sentence, or ``""``; also told whether the checkpoint has its guidance
    in its weights."""


def exporting() -> Iterator[tuple[Technique, ModuleType]]:
    """The techniques that say something of exports, and their modules."""
    for one in techniques():
        if one.exports:
            yield one, import_module(one.exports)


def targets() -> tuple[Target, ...]:
    """All of them."""
    return (F5_TTS, *(target for _, module in exporting() for target in getattr(module, "TARGETS", ())))


def target(name: str) -> Target:
    """The target called ``name``. Raises :class:`SettingError` naming all if there is none."""
    known = targets()
    found = next((one for one in known if one.name == name), None)
    if found is None:
        raise SettingError(f"There is no export target {name!r}; choose {' or '.join(one.name for one in known)}.")
    return found


def why_not(chosen: Target, profile: Profile, guided_weights: bool) -> str:
    """Why ``profile`` cannot be exported so, as a sentence, or ``""``.

    ``guided_weights``: whether the checkpoint that it is for has its guidance in its weights.
    """
    model = entry(profile.setting.model)
    if model.kind != F5:
        return (
            f"The profile is for {model.title}, which is not a model of the f5_tts package; only F5-TTS profiles can "
            "be exported."
        )
    return chosen.why_not(profile, guided_weights)


def _why_not_official(profile: Profile, guided_weights: bool) -> str:
    """Why the official package cannot run the profile, as a sentence, or ``""``."""
    modules = {one.name: module for one, module in exporting()}
    reasons = []
    for one in profile.setting.techniques:
        carried = getattr(modules.get(one.technique), "why_not", None)
        artefact = next((each for each in profile.artefacts if each.fingerprint == one.artefact), None)
        if carried is None:
            title = technique(one.technique).title
            reasons.append(f"{title} cannot run in the official package; export a profile without it.")
        else:
            reasons.append(carried(F5_TTS.name, one, artefact))
    return next(filter(None, reasons), "")


F5_TTS = Target(
    "f5-tts",
    "Official F5-TTS package",
    "the profile and a module that applies it to the official package",
    _why_not_official,
)
