"""CosyVoice 2, declared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paretone.models.base import LANGUAGE, MelFlow
from paretone.models.cosyvoice2.config import FLOW_OPTIONS, OPTIONS, without_effect
from paretone.models.declaration import LanguageExports, Model
from paretone.models.files.config_file import weight_files, weight_names
from paretone.models.files.releases import APACHE, Release, files_of

_FILES = files_of(
    "FunAudioLLM/CosyVoice2-0.5B",
    APACHE,
    *(f"CosyVoice-BlankEN/{name}" for name in ("config.json", "vocab.json", "merges.txt")),
    *("campplus.onnx", "hift.pt", "flow.pt", "speech_tokenizer_v2.onnx", "llm.pt"),
)
"""Required files of the release. Not needed: the configuration, which is code; the weights in ``CosyVoice-BlankEN``,
which ``llm.pt`` supersedes; the second tokenizer; and the copy of the flow for TensorRT."""


LANGUAGE_MODEL, REINFORCED_MODEL, FLOW = "llm.pt", "llm.rl.pt", "flow.pt"
TITLE_1, TITLE, TITLE_3 = "CosyVoice 1", "CosyVoice 2", "CosyVoice 3"


def trained_parts(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Files in ``folder`` of a language model or a flow, by the names of their weights, whatever they are called: the
    part's name in the release, the file, and the title of its CosyVoice."""
    official = [folder / name for name in (LANGUAGE_MODEL, REINFORCED_MODEL, FLOW)]
    for path in (*official, *(one for one in weight_files(folder) if one not in official)):
        names = weight_names(path)
        if "llm.model.model.embed_tokens.weight" in names:
            yield LANGUAGE_MODEL, path, TITLE if "llm_embedding.weight" in names else TITLE_3
        elif "text_embedding.weight" in names:  # It has another transformer.
            yield LANGUAGE_MODEL, path, TITLE_1
        elif "decoder.estimator.transformer_blocks.0.attn.to_q.weight" in names:
            yield FLOW, path, TITLE_3
        elif "encoder.up_encoders.0.norm_ff.weight" in names:
            yield FLOW, path, TITLE


def edition_in(folder: Path) -> str:
    """Title of the CosyVoice whose release, or a fine-tune's language model or flow, is in ``folder``: by the names of
    the weights, else by files of version 3 that fine-tunes copy. ``""`` if neither fits."""
    if found := next(trained_parts(folder), None):
        return found[2]
    copied = any((folder / name).is_file() for name in ("speech_tokenizer_v3.onnx", "cosyvoice3.yaml"))
    return TITLE_3 if copied else ""


def _recognised(folder: Path) -> float:
    there = any((folder / name).is_file() for name in (LANGUAGE_MODEL, FLOW))
    # Loading says what does not fit.
    return {TITLE: 1.0, TITLE_1: 0.5, TITLE_3: 0.0}.get(edition_in(folder), 0.5 * there)


MODEL = Model(
    id="CosyVoice2-0.5B",
    title=TITLE,
    summary="506 million parameters on Qwen2; Chinese, English, Japanese, Korean; voice cloning, streaming.",
    family=LANGUAGE,
    licence=APACHE,
    loader="paretone.models.cosyvoice2.adapter:load_cosyvoice",
    options=OPTIONS,
    release=Release(APACHE, _FILES),
    variant="CosyVoice2-0.5B",
    mel_flow=MelFlow(FLOW_OPTIONS),
    layout="cosyvoice2",
    subject="paretone.training.cosyvoice_flow:subject",
    teacher="paretone.training.teachers:CosyTeacher",
    exports=LanguageExports(
        "paretone.export.language:CosySource",
        "A prompt is `<|sos|>`, the recording's transcript and the text, `<|task|>`, and the recording's speech tokens "
        "`<|s_n|>`; the tokenizer, in which CosyVoice 2's tables are one vocabulary, reads it.",
        biased=True,
        official=True,
    ),
    recognised=_recognised,
    without_effect=without_effect,
    place=90,
)
