"""A speech language model for llama.cpp: a GGUF file, one for the draft, a script. Torch-free until files are made."""

from __future__ import annotations

import json

from paretone.export.accounts import DRAFT, FEWER_LAYERS, OPTIONS, OptionLedger
from paretone.export.delivery import Content
from paretone.export.language_targets import common_files, is_repetition_aware, prompt_and_decoder, why_not_counted
from paretone.export.targets import Order, Target, copied
from paretone.extras import why_no_gguf
from paretone.models.catalogue import entry
from paretone.setting.profile import Profile

SCRIPT, MODEL, DRAFT_FILE = "generate.py", "model.gguf", "draft.gguf"
_SPOKEN = {
    "llama": "`generate.py` keeps ids of text out; the server does not, and neither does the release.",
    "qwen2": "Ids of text are kept out by the bias of the scores, which is in the file.",
}


def why_not(profile: Profile, guided_weights: bool) -> str:
    return why_not_counted(profile, guided_weights, "llama.cpp") or why_no_gguf()


def options(ledger: OptionLedger) -> None:
    ledger.honour("in generate.py", "top_k", "top_p")
    ledger.honour("in generate.py; llama.cpp applies it after top-k and top-p", "temperature")
    ledger.honour("in generate.py; llama.cpp looks back 64 tokens", "repetition_penalty")
    if is_repetition_aware(ledger.options):
        ledger.drop("llama.cpp does not resample repeated tokens", "repeats")
    prompt_and_decoder(ledger)
    ledger.drop("llama.cpp draws other numbers from it", "seed")


def contents(order: Order) -> dict[str, Content]:
    from paretone.export.gguf_file import GgufVocabulary, architecture, gguf_file
    from paretone.export.language_bundle import TOKENIZER, language_bundle

    drafted, chosen = order.account.given.get("draft"), entry(order.profile.setting.model)
    bundle = language_bundle(order)
    vocabulary = GgufVocabulary.of(json.loads(bundle.tokenizer[TOKENIZER]), bundle.model.ids.size)
    found: dict[str, Content] = {MODEL: gguf_file(bundle.model, vocabulary, chosen.title)}
    server = f"llama-server -m {MODEL}"
    if bundle.draft is not None and drafted is not None:
        found[DRAFT_FILE] = gguf_file(bundle.draft, vocabulary, f"{chosen.title} draft")
        server += f" --model-draft {DRAFT_FILE} --spec-type draft-simple --spec-draft-n-max {drafted['length']}"
    found[SCRIPT] = copied("generate_gguf")
    use = (
        "```\npip install llama-cpp-python\npython generate.py --greedy --out tokens.json\n```\n\n"
        "`generate.py` continues the first prompt of `prompts.json`, without a draft. As a server, which takes the ids "
        f"as `prompt` of `/completion` and gives new ones with `return_tokens`:\n\n```\n{server}\n```\n\n"
        "Weights keep their precision; `llama-quantize` makes them smaller. llama.cpp rounds activations to the type "
        "of the weights, so that from float16 and bfloat16 weights a greedy token can differ from Paretone's, which "
        f"computes in float32. {_SPOKEN[architecture(bundle.model)]}\n\n"
        "The server answers with tokens, not with sound, so `paretone load` cannot measure it; llama.cpp's own tool "
        "says what one to eight requests at once take:\n\n"
        f"```\nllama-batched-bench -m {MODEL} -npp 128 -ntg 256 -npl 1,2,4,8\n```"
    )
    return found | common_files(order, "llama.cpp", use, bundle)


TARGET = Target(
    "gguf",
    "llama.cpp (GGUF)",
    "a speech language model and its draft as GGUF files, and a script that generates speech tokens",
    "llama.cpp",
    why_not,
    options,
    contents,
    frozenset({OPTIONS, FEWER_LAYERS, DRAFT}),
)
