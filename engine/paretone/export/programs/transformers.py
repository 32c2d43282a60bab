"""A speech language model for transformers, its draft as assistant, and a script. Torch-free until files are made."""

from __future__ import annotations

from functools import partial
from typing import Any

from paretone.export.accounts import ADAPTIVE_DRAFT, DRAFT, FEWER_LAYERS, OPTIONS, OptionLedger
from paretone.export.delivery import Content
from paretone.export.language_targets import (
    common_files,
    is_greedy,
    is_repetition_aware,
    prompt_and_decoder,
    why_not_language,
)
from paretone.export.targets import SAMPLING, Order, Target, copied, sampling_of
from paretone.setting.knobs import Values

SCRIPT, ASSISTANT, BIAS = "generate.py", "assistant", "score_bias.safetensors"


def options(ledger: OptionLedger) -> None:
    if is_repetition_aware(ledger.options):
        ledger.honour("a logits processor of generate.py", "repeats", "top_k", "top_p")
    else:
        ledger.honour("in generation_config.json", *SAMPLING)
    prompt_and_decoder(ledger)
    ledger.drop("transformers draws other numbers from it", "seed")


def contents(order: Order) -> dict[str, Content]:
    from paretone.export.exported_weights import safetensors_file
    from paretone.export.language_bundle import language_bundle, model_folder

    drafted = order.account.given.get("draft")
    bundle = language_bundle(order)
    stops = list(bundle.model.ids.stops)
    found: dict[str, Content] = model_folder(bundle.model, generation(order.account.options, stops))
    if bundle.draft is not None and drafted is not None:
        assisting = {  # Only the number of tokens ends a draft.
            "num_assistant_tokens": drafted["length"],
            "num_assistant_tokens_schedule": "heuristic" if drafted["adaptive"] else "constant",
            "assistant_confidence_threshold": 0.0,
            "eos_token_id": stops,
            "pad_token_id": stops[0],
        }
        found |= {f"{ASSISTANT}/{name}": one for name, one in model_folder(bundle.draft, assisting).items()}
    if bundle.model.bias is not None:
        found[BIAS] = safetensors_file({"bias": bundle.model.bias.float()}, {"format": "pt"})
    found |= bundle.tokenizer
    found[SCRIPT] = copied("generate_speech")
    assisted = "with the draft as `assistant_model`" if bundle.draft is not None else ""
    use = (
        "```\npip install torch transformers\npython generate.py --greedy --out tokens.json\n```\n\n"
        f"`generate.py` calls `model.generate` {assisted} on the first prompt of `prompts.json` and writes speech "
        "tokens. Greedy tokens are those of Paretone in float32; without `--greedy` they are drawn as the profile "
        "says."
    ).replace("  ", " ")
    return found | common_files(order, "transformers", use, bundle)


def generation(options: Values, stops: list[int]) -> dict[str, Any]:
    common: dict[str, Any] = {"eos_token_id": stops, "pad_token_id": stops[0]}
    if is_greedy(options):
        return {"do_sample": False, "repetition_penalty": options.get("repetition_penalty", 1.0), **common}
    if is_repetition_aware(options):  # The script's own processor draws.
        return {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, **common}
    return {"do_sample": True, **sampling_of(options), **common}


TARGET = Target(
    "transformers",
    "Hugging Face transformers",
    "a speech language model, its draft as assistant, and a script that generates speech tokens",
    "transformers",
    partial(why_not_language, program="transformers"),
    options,
    contents,
    frozenset({OPTIONS, FEWER_LAYERS, DRAFT, ADAPTIVE_DRAFT}),
)
