"""Qwen3-TTS (12 Hz) in its two sizes and three kinds, declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from paretone.models.base import LANGUAGE
from paretone.models.declaration import LanguageExports, Model, Voices
from paretone.models.files.config_file import entries_of, is_of_type
from paretone.models.files.releases import APACHE, Release, files_of
from paretone.models.qwen3_tts.config import (
    BASE,
    CODES_PER_FRAME,
    CUSTOM_VOICE,
    DESCRIBED,
    INSTRUCTION,
    OPTIONS,
    SPEAKERS,
    TITLE,
    VOICE_DESIGN,
)

MODEL_TYPE = "qwen3_tts"
CODEC = "speech_tokenizer"
"""Folder of the speech tokenizer in a release."""
_NAMES = {BASE: "Base", CUSTOM_VOICE: "CustomVoice", VOICE_DESIGN: "VoiceDesign"}
_SIZES = {"0b6": "0.6B", "1b7": "1.7B"}
_PARAMETERS = {"0b6": 0.9, "1b7": 1.9}
"""Billions, without the speech tokenizer."""
_DOES = {
    BASE: "clones a recording, with or without its transcript",
    CUSTOM_VOICE: "nine named speakers",
    VOICE_DESIGN: "the voice is described in words",
}


def kind_of(folder: Path) -> tuple[str, str]:
    """Kind and size, such as ``base`` and ``0b6``, of the release in ``folder``; empty if there is none."""
    described = entries_of(folder / "config.json")
    if described.get("model_type") != MODEL_TYPE:
        return "", ""
    return str(described.get("tts_model_type", "")), str(described.get("tts_model_size", ""))


def speakers_in(folder: Path) -> tuple[tuple[str, str], ...]:
    """Ids and titles of the speakers of the release in ``folder``; of the published one before it is there."""
    described = entries_of(folder / "config.json")
    codes = described.get("talker_config")
    there = codes.get("spk_id") if isinstance(codes, Mapping) else None
    names = [str(one).lower() for one in there] if isinstance(there, Mapping) else [] if described else list(SPEAKERS)
    known = [one for one in SPEAKERS if one in names]
    return tuple((one, one.replace("_", " ").title()) for one in (*known, *sorted(set(names) - set(known))))


_NAMED: dict[str, Callable[[Path], tuple[tuple[str, str], ...]]] = {
    CUSTOM_VOICE: speakers_in,
    VOICE_DESIGN: lambda folder: ((DESCRIBED, "As described"),),
}


def _release(kind: str, size: str, place: int) -> Model:
    name = f"Qwen3-TTS-12Hz-{_SIZES[size]}-{_NAMES[kind]}"
    repository = f"Qwen/{name}"
    files = (
        *files_of(repository, APACHE, "config.json", "generation_config.json", "preprocessor_config.json"),
        *files_of(repository, APACHE, "tokenizer_config.json", "merges.txt", "vocab.json"),
        *files_of(repository, APACHE, f"{CODEC}/config.json", f"{CODEC}/preprocessor_config.json"),
        *files_of(repository, APACHE, f"{CODEC}/model.safetensors", "model.safetensors"),
    )

    def recognised(folder: Path) -> float:
        exact = kind_of(folder) == (kind, size)
        return 1.0 if exact else 0.5 * is_of_type(folder, MODEL_TYPE, "talker.codec_head.weight")

    options = OPTIONS[kind]
    if (kind, size) == (CUSTOM_VOICE, "0b6"):
        # Upstream drops its instructions.
        options = tuple(one for one in options if one is not INSTRUCTION)
    return Model(
        id=name,
        title=f"{TITLE} {_SIZES[size]} {_NAMES[kind]}",
        summary=f"{_PARAMETERS[size]} billion parameters on Qwen3, ten languages; {_DOES[kind]}; exact streaming.",
        family=LANGUAGE,
        licence=APACHE,
        loader="paretone.models.qwen3_tts.adapter:load_qwen3_tts",
        options=options,
        release=Release(APACHE, files),
        kind=f"{TITLE} {_NAMES[kind]}",
        variant=name,
        voices=Voices(wordless=kind == BASE, named=_NAMED.get(kind)),
        codes_per_token=CODES_PER_FRAME,
        teacher="paretone.training.frame_teacher:FrameTeacher",
        exports=LanguageExports("paretone.export.language:TalkerSource", "", official=True),
        recognised=recognised,
        place=place,
    )


_RELEASES = ((BASE, "0b6"), (CUSTOM_VOICE, "0b6"), (BASE, "1b7"), (CUSTOM_VOICE, "1b7"), (VOICE_DESIGN, "1b7"))
MODELS = tuple(_release(kind, size, 131 + number) for number, (kind, size) in enumerate(_RELEASES))


def kind_and_size(model: Model) -> tuple[str, str]:
    """Kind and size of one of :data:`MODELS`; empty for another model."""
    return dict(zip((one.id for one in MODELS), _RELEASES, strict=True)).get(model.id, ("", ""))
