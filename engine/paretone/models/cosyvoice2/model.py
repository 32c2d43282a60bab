"""CosyVoice 2, declared."""

from __future__ import annotations

from pathlib import Path

from paretone.models.base import LANGUAGE, MelFlow
from paretone.models.cosyvoice2.config import FLOW_OPTIONS, OPTIONS, without_effect
from paretone.models.declaration import LanguageExports, Model
from paretone.models.files.releases import APACHE, Release, files_of

_FILES = files_of(
    "FunAudioLLM/CosyVoice2-0.5B",
    APACHE,
    *(f"CosyVoice-BlankEN/{name}" for name in ("config.json", "vocab.json", "merges.txt")),
    *("campplus.onnx", "hift.pt", "flow.pt", "speech_tokenizer_v2.onnx", "llm.pt"),
)
"""Required files of the release. Not needed: the configuration, which is code; the weights in ``CosyVoice-BlankEN``,
which ``llm.pt`` supersedes; the second tokenizer; and the copy of the flow for TensorRT."""


def _recognised(folder: Path) -> float:
    """The release; a fine-tune of its language model or its flow alone looks like one of any version."""
    there = [(folder / name).is_file() for name in ("llm.pt", "flow.pt")]
    return 0.0 if is_version_3(folder) else 1.0 if all(there) else 0.5 * any(there)


def is_version_3(folder: Path) -> bool:
    """Whether ``folder`` holds its tokenizer, or its configuration, by which upstream tells the version and which
    fine-tunes copy."""
    return any((folder / name).is_file() for name in ("speech_tokenizer_v3.onnx", "cosyvoice3.yaml"))


MODEL = Model(
    id="CosyVoice2-0.5B",
    title="CosyVoice 2",
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
