"""LM mini and Omni mini, declared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paretone.models.base import LANGUAGE, MASKED
from paretone.models.declaration import LanguageExports, Model, Voices
from paretone.models.files.config_file import is_of_type
from paretone.models.files.releases import APACHE
from paretone.sampling.options import (
    CROSS_FADE,
    DEMASKING_OPTIONS,
    READING,
    REPETITION_PENALTY,
    SPEED,
    TEMPERATURE,
    TOP_K,
    TOP_P,
)
from paretone.setting.knobs import Values

_SHORT_FADE = replace(CROSS_FADE, default=0.02)


def _has_layout(folder: Path) -> float:
    return float((folder / "layout.json").is_file())


def _is_masked(folder: Path) -> float:
    masked = (folder / "codec").is_dir() or is_of_type(folder, "omnivoice", "audio_heads.weight")
    return _has_layout(folder) * masked


MODELS = (
    Model(
        id="lm-mini",
        title="LM mini",
        summary="11 million parameters, token by token, five voices, English; ships with Paretone.",
        family=LANGUAGE,
        licence=APACHE,
        loader="paretone.models.minis.lm_mini:load_lm_mini",
        options=(TEMPERATURE, TOP_K, TOP_P, REPETITION_PENALTY, SPEED, _SHORT_FADE, *READING),
        bundled=True,
        variant="lm-mini",
        vocoder="natural-vocoder",
        voices=Voices(shortened=True),
        teacher="paretone.training.teachers:LmMiniTeacher",
        exports=LanguageExports(
            "paretone.export.language:lm_mini_source",
            "A prompt is a phone for every speech token, those of the recording first, the end of the text, the "
            "beginning of speech, and the recording's speech tokens. `positions` begin anew where speech begins.",
            restarting=True,
        ),
        recognised=lambda folder: _has_layout(folder) - _is_masked(folder),
        place=70,
    ),
    Model(
        id="omni-mini",
        title="Omni mini",
        summary="9 million parameters in OmniVoice's layout, five voices, English; ships with Paretone.",
        family=MASKED,
        licence=APACHE,
        loader="paretone.models.minis.omni_mini:load_omni_mini",
        options=(*DEMASKING_OPTIONS, SPEED, _SHORT_FADE, *READING),
        default_options=Values(steps=16, position_temperature=2.5, guidance=0.5),
        bundled=True,
        variant="omni-mini",
        vocoder="natural-vocoder",
        voices=Voices(shortened=True),
        recognised=_is_masked,
        place=80,
    ),
)
