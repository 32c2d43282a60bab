"""The forms in which a profile runs without Paretone, and which profiles each of them can carry. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import SettingError
from engine.models.catalogue import entry
from engine.setting.profile import Profile
from engine.techniques import ditreducio, guidance_free, steps, technique

TRANSLATED = (ditreducio.TECHNIQUE.name, guidance_free.NAME, steps.TECHNIQUE.name)
"""The techniques that the official package can be given from outside."""
REUSE = "reuse"
"""The only kind of temporal skip that the official way knows."""


@dataclass(frozen=True)
class Target:
    """One form."""

    name: str
    title: str
    summary: str
    """What the folder then holds."""


F5_TTS = Target("f5-tts", "Official F5-TTS package", "the profile and a module that applies it to the official package")
SAFETENSORS = Target("safetensors", "CFG-free weights", "CFG-free weights in the official layout")
TARGETS = (F5_TTS, SAFETENSORS)


def target(name: str) -> Target:
    """The target called ``name``. Raises :class:`SettingError` naming all where there is none."""
    found = next((one for one in TARGETS if one.name == name), None)
    if found is None:
        raise SettingError(f"There is no export target {name!r}; choose {' or '.join(one.name for one in TARGETS)}.")
    return found


def why_not(chosen: Target, profile: Profile, cfg_free_checkpoint: bool) -> str:
    """Why ``profile`` cannot be exported so, as a sentence, or ``""``.

    ``cfg_free_checkpoint``: whether the checkpoint that it is for is CFG-free itself.
    """
    model = entry(profile.setting.model)
    if model.loader != "f5":
        return (
            f"The profile is for {model.title}, which is not a model of the f5_tts package; only F5-TTS profiles can "
            "be exported."
        )
    if chosen is SAFETENSORS:
        if cfg_free_checkpoint or profile.weights:
            return ""
        return (
            "The profile runs the plain checkpoint with guidance: there are no CFG-free weights to write; engage "
            "CFG-free in the profile."
        )
    if profile.artefact("table") is not None and profile.artefact("table").temporal != REUSE:
        return (
            "The strategy table was calibrated with forecasts, which the official package cannot run; "
            "calibrate without them."
        )
    for one in profile.setting.techniques:
        if one.technique not in TRANSLATED:
            return f"{technique(one.technique).title} cannot run in the official package; export a profile without it."
    return ""
