"""F5-TTS, E2-TTS and F5 mini, declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paretone.models.base import FLOW
from paretone.models.declaration import Model, Voices
from paretone.models.f5.config import LAYOUT, NATURAL_PHONES, OPTIONS, SIDECAR, VARIANTS
from paretone.models.files.config_file import entries_of, names_in, weight_files
from paretone.models.files.releases import APACHE, MIT, NON_COMMERCIAL, Release, RemoteFile, files_of
from paretone.sampling.options import READING
from paretone.setting.knobs import Values

KIND = "F5-TTS"
LOADER = "paretone.models.f5.adapter:load_f5"
VOCODER = "vocos-mel-24khz"
_VOCODER = files_of("charactr/vocos-mel-24khz", MIT, "config.yaml", "pytorch_model.bin", folder=f"../{VOCODER}/")


LATEST = "F5TTS_v1_Base"


def _official(variant: str, title: str, summary: str, place: int, weights: str, vocabulary: str, **more: Any) -> Model:
    repository, _, file = weights.partition(":")
    release = Release(
        NON_COMMERCIAL,
        (
            RemoteFile("SWivid/F5-TTS", vocabulary, "vocab.txt", NON_COMMERCIAL),
            *_VOCODER,
            RemoteFile(repository, file, Path(file).name, NON_COMMERCIAL),
        ),
    )
    return Model(
        id=variant,
        title=title,
        summary=summary,
        family=FLOW,
        licence=NON_COMMERCIAL,
        loader=LOADER,
        options=OPTIONS,
        release=release,
        kind=KIND,
        layout=LAYOUT,
        subject="paretone.training.fine_tuning:f5_subject",
        variant=variant,
        architectures=tuple(VARIANTS),
        vocoder=VOCODER,
        has_separate_vocoder=True,
        voices=Voices(shortened=True),
        place=place,
        recognised=lambda folder: _likely(folder, variant),
        **more,
    )


def _is_natural(folder: Path) -> float:
    model = entries_of(folder / SIDECAR).get("model")
    return float(isinstance(model, dict) and model.get("text_frontend") == NATURAL_PHONES)


def _likely(folder: Path, variant: str) -> float:
    """By the names of the weights. Fine-tunes do not say their version: they, and weights that cannot be read, are
    taken for one of v1's."""
    names = names_in(folder)
    own = any(name.endswith("transformer.text_embed.text_embed.weight") for name in names) and not _is_natural(folder)
    sure = own * (1.0 if (folder / "vocab.txt").is_file() else 0.5)
    if variant != LATEST:
        return sure * (variant in folder.resolve().name)
    return sure or 0.1 * (not names and bool(weight_files(folder)))


MODELS = (
    Model(
        id="f5-mini",
        title="F5 mini",
        summary="8 million parameters, five voices, English; ships with Paretone and speaks on any processor.",
        family=FLOW,
        licence=APACHE,
        loader=LOADER,
        options=(*OPTIONS, *READING),
        default_options=Values(steps=12, guidance=0.7),
        bundled=True,
        kind=KIND,
        layout=LAYOUT,
        subject="paretone.training.fine_tuning:f5_subject",
        architectures=tuple(VARIANTS),
        vocoder="natural-vocoder",
        voices=Voices(shortened=True),
        recognised=_is_natural,
        place=10,
    ),
    _official(
        LATEST,
        "F5-TTS v1 Base",
        "336 million parameters, English and Chinese, voice cloning.",
        20,
        "SWivid/F5-TTS:F5TTS_v1_Base/model_1250000.safetensors",
        "F5TTS_v1_Base/vocab.txt",
        programs={"vllm-omni": "SWivid/F5-TTS/F5TTS_v1_Base", "crispasr": "f5-tts"},
    ),
    _official(
        "F5TTS_Base",
        "F5-TTS Base (v0)",
        "The first release: 336 million parameters, English and Chinese.",
        30,
        "SWivid/F5-TTS:F5TTS_Base/model_1200000.safetensors",
        "F5TTS_Base/vocab.txt",
        programs={"vllm-omni": "SWivid/F5-TTS/F5TTS_Base"},
    ),
    _official(
        "E2TTS_Base",
        "E2-TTS Base",
        "333 million parameters, a plain U-Net transformer without text encoder.",
        40,
        "SWivid/E2-TTS:E2TTS_Base/model_1200000.safetensors",
        "F5TTS_Base/vocab.txt",
    ),
)
