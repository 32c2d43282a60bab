"""CosyVoice 3, declared."""

from __future__ import annotations

from paretone.models.base import LANGUAGE, MelFlow
from paretone.models.cosyvoice2.config import CROSS_LINGUAL, FLOW_OPTIONS, INSTRUCTION, MODE
from paretone.models.cosyvoice2.model import TITLE_3, edition_in
from paretone.models.cosyvoice3.config import LAYOUT, NAME, OPTIONS, REINFORCED
from paretone.models.declaration import LanguageExports, Model
from paretone.models.files.releases import APACHE, Release, files_of
from paretone.setting.knobs import Values

_FILES = files_of(
    "FunAudioLLM/Fun-CosyVoice3-0.5B-2512",
    APACHE,
    *(f"CosyVoice-BlankEN/{name}" for name in ("config.json", "vocab.json", "merges.txt")),
    *("campplus.onnx", "hift.pt", "flow.pt", "speech_tokenizer_v3.onnx", "llm.pt", "llm.rl.pt"),
)


def _without_effect(option: str, options: Values) -> str:
    if option != INSTRUCTION.name or options[MODE.name] != CROSS_LINGUAL:
        return ""
    return f"Not for the mode “{MODE.titles[MODE.values.index(CROSS_LINGUAL)]}”; choose another first."


MODEL = Model(
    id=NAME,
    title=TITLE_3,
    summary="506 million parameters on Qwen2, then a diffusion transformer; Chinese, English and more; voice cloning, "
    "instructions, streaming.",
    family=LANGUAGE,
    licence=APACHE,
    loader="paretone.models.cosyvoice3.checkpoint:load_cosyvoice3",
    options=OPTIONS,
    release=Release(APACHE, _FILES),
    variant=NAME,
    architectures=(NAME, REINFORCED),
    mel_flow=MelFlow(FLOW_OPTIONS, transformer=True),
    layout=LAYOUT,
    subject="paretone.training.cosyvoice_flow:subject",
    teacher="paretone.training.teachers:CosyTeacher",
    exports=LanguageExports(
        "paretone.export.language:cosyvoice3_source",
        "A prompt is `<|sos|>`, the instruction with `<|endofprompt|>`, the recording's transcript and the text, "
        "`<|task|>`, and the recording's speech tokens `<|s_n|>`; the tokenizer, in which CosyVoice 3's tables are one "
        "vocabulary, reads it.",
        official=True,
    ),
    recognised=lambda folder: float(edition_in(folder) == TITLE_3),
    without_effect=_without_effect,
    place=95,
)
