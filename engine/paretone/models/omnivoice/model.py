"""OmniVoice, declared."""

from __future__ import annotations

from paretone.models.base import MASKED
from paretone.models.declaration import Model
from paretone.models.files.config_file import is_of_type
from paretone.models.files.releases import HIGGS, NON_COMMERCIAL, Release, files_of
from paretone.models.omnivoice.config import LAYOUT, OPTIONS

_FILES = (
    *files_of("k2-fsa/OmniVoice", NON_COMMERCIAL, "config.json", "tokenizer.json"),
    *files_of("k2-fsa/OmniVoice", HIGGS, "audio_tokenizer/config.json", "audio_tokenizer/model.safetensors"),
    *files_of("k2-fsa/OmniVoice", NON_COMMERCIAL, "model.safetensors"),
)
"""The code is published under Apache-2.0, the weights are not: some of their training data forbid commercial use
(issues 235, 258 and 262 of k2-fsa/OmniVoice). The codec is Boson AI's."""


MODEL = Model(
    id="OmniVoice",
    title="OmniVoice",
    summary="613 million parameters on Qwen3, 646 languages, voice cloning and description; all of a sentence at once.",
    family=MASKED,
    licence=NON_COMMERCIAL,
    loader="paretone.models.omnivoice.adapter:load_omnivoice",
    options=OPTIONS,
    release=Release(NON_COMMERCIAL, _FILES),
    variant="OmniVoice",
    layout=LAYOUT,
    programs={"omnivoice": "k2-fsa/OmniVoice", "vllm-omni": "k2-fsa/OmniVoice", "crispasr": "omnivoice"},
    recognised=lambda folder: 0.5 * is_of_type(folder, "omnivoice", "audio_heads.weight"),
    place=130,
)
