from paretone.models.declaration import LanguageExports, Model
from paretone.models.files.config_file import entries_of
from paretone.sampling.options import REPETITION_PENALTY, TEMPERATURE, TOP_K, TOP_P

PROMPT = "A prompt is the recording's transcript, the text, `<|speech|>`, and the recording's codes `<|s_n|>`."

MODEL = Model(
    id="code-lm",
    title="Code LM",
    summary="Any Llama or Qwen2 that continues a text with the codes of an EnCodec; folder: see the tutorial.",
    family="language",
    licence="Apache-2.0",
    loader="paretone_code_lm_network:load",
    options=(TEMPERATURE, TOP_K, TOP_P, REPETITION_PENALTY),
    exports=LanguageExports("paretone.export.language:HuggingFaceSource", PROMPT),
    recognised=lambda folder: float("first_code" in entries_of(folder / "speech.json")),
)
