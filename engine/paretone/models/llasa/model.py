"""LLaSA in its three sizes, declared."""

from __future__ import annotations

from pathlib import Path

from paretone.models.base import LANGUAGE
from paretone.models.declaration import LanguageExports, Model
from paretone.models.files.config_file import entries_of, is_of_type
from paretone.models.files.releases import INDEX, NON_COMMERCIAL, Release, RemoteFile, files_of
from paretone.models.llasa.config import OPTIONS

CODEC = "xcodec2"


def _release(size: str, weights: str) -> Release:
    """Includes the release of XCodec2 converted for ``transformers``, the only one with a usable encoder. Meta's
    community licence for the underlying Llamas applies as well."""
    repository, codec = f"HKUSTAudio/Llasa-{size}", "HKUSTAudio/xcodec2-hf"
    return Release(
        NON_COMMERCIAL,
        (
            *files_of(repository, NON_COMMERCIAL, "config.json", "tokenizer.json"),
            *files_of(codec, NON_COMMERCIAL, "config.json", folder=f"../{CODEC}/"),
            RemoteFile(repository, weights, weights, NON_COMMERCIAL, index=weights == INDEX),
            *files_of(codec, NON_COMMERCIAL, "model.safetensors", folder=f"../{CODEC}/"),
        ),
    )


def _of_size(size: str, width: int, summary: str, place: int, weights: str = INDEX) -> Model:
    """``width``: that of its hidden states, by which fine-tunes are told apart."""

    def recognised(folder: Path) -> float:
        own = entries_of(folder / "config.json").get("hidden_size") == width
        return is_of_type(folder, "llama", "model.layers.0.self_attn.q_proj.weight") * (0.6 if own else 0.5)

    return Model(
        id=f"Llasa-{size}",
        title=f"LLaSA {size}",
        summary=summary,
        family=LANGUAGE,
        licence=NON_COMMERCIAL,
        loader="paretone.models.llasa.adapter:load_llasa",
        options=OPTIONS,
        release=_release(size, weights),
        kind="LLaSA",
        variant=f"Llasa-{size}",
        vocoder=CODEC,
        has_separate_vocoder=True,
        teacher="paretone.training.teachers:LlasaTeacher",
        exports=LanguageExports(
            "paretone.export.language:HuggingFaceSource",
            "A prompt is the chat of the release, with a fixed date, up to `<|SPEECH_GENERATION_START|>`, and then the "
            "recording's speech tokens `<|s_n|>`; the tokenizer reads it.",
        ),
        recognised=recognised,
        place=place,
    )


MODELS = (
    _of_size(
        "1B",
        2048,
        "1.4 billion parameters, built with Llama 3.2, English and Chinese, voice cloning; 16 kHz.",
        100,
        "model.safetensors",
    ),
    _of_size("3B", 3072, "The same with 3.4 billion parameters; for a graphics card.", 110),
    _of_size("8B", 4096, "The same with 8.6 billion parameters, built with Llama 3.1; for a large graphics card.", 120),
)
